"""The keys of the scenario format: which there are, what each may hold, which of them kemu has built.

Role: the one table that :mod:`kemu.lab.scenario.loading.loader` checks files against, and that
``kemu scenarios schema`` turns into JSON Schema for editors. its neighbours have its parts, by what they speak of;
docs/scenarios.md explains the same keys to people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated import variants
from kemu.emulated.apiserver.settings import ApiServers
from kemu.emulated.autoscaler import settings as autoscaling
from kemu.emulated.client import clients
from kemu.emulated.client.volume_drivers import Storage
from kemu.emulated.descheduler import policies
from kemu.emulated.kubelet.settings.references import References
from kemu.emulated.queues import settings as queues
from kemu.emulated.settings.declared import Section, setting
from kemu.emulated.settings.shapes import (
    DEFINITIONS,
    NAME,
    POSITIVE_DURATION,
    QUANTITY,
    Choice,
    Free,
    Key,
    ListOf,
    MapOf,
    Number,
    Record,
    ScalarOr,
    Switch,
    Text,
    Whole,
    WordOr,
)
from kemu.emulated.store.settings import Store
from kemu.lab.checks.history.windows import Window
from kemu.lab.checks.limits import Checks
from kemu.lab.scenario.format import clusters
from kemu.lab.scenario.format.events import Event
from kemu.lab.scenario.format.holds import Held
from kemu.lab.scenario.format.keys import (
    controller_keys,
    expectation_keys,
    fault_keys,
    matrix_keys,
    runtime_keys,
    timing_keys,
)
from kemu.lab.scenario.format.users import User
from kemu.lab.scenario.format.workloads import PodLives, Workload

_NODE_GROUP = Section(autoscaling.NodeGroup, {"template": Section(clusters.NodeFields)})
_AUTOSCALER = Section(autoscaling.Settings, {"nodeGroups": ListOf(_NODE_GROUP)})

_BEGIN = Choice(("watchList", "listWatch"))


@dataclass(frozen=True)
class Informers:
    """Of all actors."""

    begin: str = setting(
        _BEGIN,
        "How they begin: with a watch that brings the newest state, as since v1.35, or with a list of any state.",
        "watchList",
    )
    streams: str = setting(
        Choice((clients.SHARED, clients.PER_KIND)),
        "An actor has one watch stream, on which all kinds come in the order of the store, or one for each kind, as in "
        "client-go: then kinds overtake one another where latencies vary.",
        clients.SHARED,
    )


_OBSERVED_LINE = Record(
    {
        "at": Key(Number(), "When it began, in seconds of the run; negative: before it.", required=True),
        "to": Key(Number(), "When it was last seen; by default the same."),
        "reason": Key(Text(), "The reason of the Events.", required=True),
        "warning": Key(Switch(), "Whether they are warnings."),
        "times": Key(Whole(), "How many Events are alike; 1 by default."),
        "of": Key(ListOf(Text()), "The objects, such as Pod shop/web-1.", required=True),
        "says": Key(Text(".*"), "The message of the last one."),
    }
)
OBSERVED = ListOf(_OBSERVED_LINE)
"""The lines of a time line."""
_OBSERVED_FILE = Record({"file": Key(Text(), "A file with the lines.", required=True)})

API_VERSION = "kemu.dev/v1"
KIND = "Scenario"

_PRIORITY_CLASS = Record(
    {
        "value": Key(Whole(), "The priority.", required=True),
        "preemptionPolicy": Key(Choice(("PreemptLowerPriority", "Never")), "Whether it preempts."),
        "globalDefault": Key(Switch(), "For pods that name no class."),
        "description": Key(Text(".*"), "For whom it is."),
    }
)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What stands under ``spec``; :mod:`kemu.lab.scenario.loading.loader` builds a scenario from it."""

    seed: int = setting(Whole(0), "Everything left to chance follows from it; --seed overrides it.", 0)
    duration_ns: int = setting(POSITIVE_DURATION, "Virtual time after which the run ends; {default} by default.", "10m")
    runtime: tuple[str, Mapping[str, str | int]] = setting(
        runtime_keys.Runtime(),
        "Where it runs: sim, wall, ray or real, or ray with its settings; --runtime overrides it.",
        "sim",
    )
    speed: float = setting(Number(positive=True), "Virtual seconds for each real one, with ray only.", 1)
    scale: int = setting(
        Whole(1),
        "How many times as large the cluster is: groups of nodes, and the pods of workloads that arrive; {default} by "
        "default. What manifests, events and chaos name stays.",
        1,
    )
    nodes: list[clusters.Nodes] = setting(ListOf(clusters.NODES), "The nodes, each with its kubelet.", [])
    schedulers: list[clusters.Scheduler] | None = setting(
        ListOf(Section(clusters.Scheduler, noun="configuration", choice_required=False)),
        "The schedulers; by default one named default-scheduler.",
    )
    modules: list[str] = setting(
        ListOf(Text()),
        "Folders with Python modules that it names, relative to its own folder, which is always one.",
        [],
    )
    autoscaler: autoscaling.Settings | None = setting(
        _AUTOSCALER, "A cluster autoscaler: node groups that grow and shrink, and the flags by which they do."
    )
    descheduler: policies.Settings | None = setting(
        Section(policies.Settings), "A descheduler: its policy, and how often it acts on it."
    )
    queues: queues.Settings | None = setting(
        Section(queues.Settings), "Queues of Jobs with quotas, cohorts, borrowing and preemption, as Kueue has them."
    )
    users: list[User] = setting(
        ListOf(Section(User)), "People and programs as whom events may be done, with their roles.", []
    )
    extenders: list[clusters.Extender] = setting(
        ListOf(Section(clusters.Extender)),
        "Extenders of schedulers: processes that filter, rank and bind beside them.",
        [],
    )
    api_servers: ApiServers = setting(Section(ApiServers), "The API servers.", {})
    store: Store = setting(Section(Store), "The store.", {})
    event_objects: str = setting(
        Choice(("notable", "all", "none")),
        "Which Event objects are written; notable: not one for every binding.",
        "notable",
    )
    pod_statuses: str = setting(
        Choice(("exact", "sparing")),
        "exact: kubelets write every status of a pod; sparing: no more than somebody acts on.",
        "exact",
    )
    heartbeats: str = setting(
        Choice(("standing", "exact")),
        "exact: every heartbeat of a kubelet is a message; standing: not where nobody can tell.",
        "standing",
    )
    metrics: bool = setting(
        Switch(), "API servers log each request, and controllers each turn of a work queue, for kemu metrics.", False
    )
    controllers: Any = setting(
        controller_keys.SHAPE, "Which controllers run; by default those that the scenario needs."
    )
    images: Mapping[str, str] = setting(MapOf(QUANTITY), "How large images are, by name.", {})
    timing: Mapping[str, Any] = setting(
        timing_keys.Timing(), "How long things take: a preset, or times, each a value or a distribution, or both.", {}
    )
    storage: Storage | None = setting(
        Section(Storage), "How the CSI drivers behave that create, attach and mount volumes."
    )
    references: References | None = setting(
        Section(References), "Whether what pods name has to be there: ConfigMaps, Secrets, images."
    )
    priority_classes: Mapping[str, Any] = setting(
        MapOf(ScalarOr(Whole(), _PRIORITY_CLASS)),
        "Priority classes: name and value, or the fields of a PriorityClass.",
        {},
    )
    manifests: list[Any] = setting(
        ListOf(Free()),
        "Kubernetes objects, created in this order before the clock starts; {file: path} for those of a file, a folder "
        "or a pattern.",
        [],
    )
    unsimulated: str | list[str] | None = setting(
        WordOr(Choice(("refuse", "ignore")), ListOf(Text())),
        "Objects of kinds that kemu does not simulate: refused, by default, or left out; or the kinds to leave out.",
    )
    events: list[Event] = setting(ListOf(Section(Event, noun="action")), "Things that happen at a time.", [])
    workloads: list[Workload] = setting(ListOf(Section(Workload, noun="source of pods")), "Streams of pods.", [])
    lives: list[PodLives] = setting(
        ListOf(Section(PodLives)), "How pods live that do not say, also those that controllers make.", []
    )
    programs: bool = setting(
        Switch(),
        "Containers that do not say how they live do what their command or image does; {default} by default.",
        False,
    )
    chaos: list[Any] = setting(ListOf(fault_keys.CHAOS), "Faults.", [])
    checks: Checks = setting(Section(Checks), "What is always looked at.", {})
    measure: Window = setting(
        Section(Window), "Which pods the figures count, and which time; by default all of the run.", {}
    )
    informers: str | Informers = setting(
        ScalarOr(_BEGIN, Section(Informers)), "How informers begin, in short; or how they begin and watch.", "watchList"
    )
    bugs: list[str] = setting(
        ListOf(Choice(variants.names(variants.BUG))),
        "Bugs that Kubernetes has fixed since, by issue: see docs/museum.",
        [],
    )
    fixes: list[str] = setting(
        ListOf(Choice(variants.names(variants.FIX))), "Bugs of today's Kubernetes that are not to be there.", []
    )
    holds: list[Held] = setting(ListOf(Section(Held)), "Messages that are kept back: what kemu explore found.", [])
    ablate: list[str] = setting(
        ListOf(Choice(variants.names(variants.ABLATION))), "Safeguards that the components of the cluster lack.", []
    )
    matrix: Any = setting(matrix_keys.MATRIX, "Values for paths below spec, or named parameters; all combinations run.")
    observed: Any = setting(
        WordOr(_OBSERVED_FILE, OBSERVED),
        "What a real cluster said at these times, shown beside the run and never played: {file: path}, or the lines.",
    )
    until: Mapping[str, Any] | None = setting(expectation_keys.EXPECTATION, "The run ends when this holds.")
    expect: list[Any] = setting(ListOf(expectation_keys.EXPECTATION), "What the run must show.", [])


SPEC = Section(Spec)
SCENARIO = Record(
    {
        "apiVersion": Key(Choice((API_VERSION,)), "Always kemu.dev/v1.", required=True),
        "kind": Key(Choice((KIND,)), "Always Scenario.", required=True),
        "metadata": Key(
            Record(
                {
                    "name": Key(NAME, "Its name; by default that of the file."),
                    "description": Key(Text(".*"), "What it shows, for a newcomer."),
                }
            ),
            "Name and description.",
        ),
        "spec": Key(SPEC, "The scenario.", required=True),
    }
)


def json_schema() -> dict[str, Any]:
    """The format as JSON Schema (2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://kemu.dev/schemas/v1/scenario.json",
        "title": "kemu scenario",
        **SCENARIO.schema(),
        "$defs": {name: shape.schema() for name, shape in sorted(DEFINITIONS.items())},
    }
