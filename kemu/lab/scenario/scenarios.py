"""A scenario, read and checked: what the runner builds a cluster from.

Role: made by :func:`kemu.lab.scenario.loading.loader.load`, taken by the runner, the user actor and the verdict. All
times are integer nanoseconds from the start of the run unless a name says ``_s``; Kubernetes objects are messages.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from google.protobuf.message import Message

from kemu import errors
from kemu.emulated.apiserver.settings import ApiServers
from kemu.emulated.autoscaler import settings as autoscaler_settings
from kemu.emulated.client.volume_drivers import Storage
from kemu.emulated.controllers.settings import Controller
from kemu.emulated.descheduler import policies
from kemu.emulated.kubelet.settings.references import References
from kemu.emulated.objects.plain import Json
from kemu.emulated.queues import settings as queue_settings
from kemu.emulated.settings.documents import Document
from kemu.emulated.store.settings import Store
from kemu.lab.checks.history.windows import Window
from kemu.lab.checks.limits import Checks
from kemu.lab.scenario.expectations import Expectation
from kemu.lab.scenario.format.clusters import Extender, Node, Scheduler
from kemu.lab.scenario.format.events import Event
from kemu.lab.scenario.format.users import User
from kemu.lab.scenario.format.workloads import PodLives, Workload
from kemu.runtime.faults.kinds import PROCESS_FAULTS
from kemu.runtime.holds import Hold

DEFAULT_SCHEDULER = "default-scheduler"


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that a cluster autoscaler adds and removes."""

    settings: autoscaler_settings.NodeGroup
    template: Node
    """Template of the nodes to come, which get names of their own."""
    initial: tuple[str, ...]
    """The nodes that are there when the clock starts; they stand among the scenario's nodes."""

    @property
    def name(self) -> str:
        return self.settings.name


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """A cluster autoscaler and the provider of its machines."""

    groups: tuple[NodeGroup, ...]
    settings: autoscaler_settings.Settings


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object that is there before the clock starts, and where it is stated."""

    message: Message
    file: str
    line: int
    column: int
    path: str


@dataclass(frozen=True, slots=True)
class VictimCount:
    """How many of those that match a pattern a fault takes; which, the seed decides."""

    count: int = 1
    share: float | None = None
    """Instead: this part of them, between 0 and 1; 1: all."""

    def of(self, matching: int) -> int:
        """How many of so many. A share is rounded, halves up, but it is at least one if anything matches."""
        wanted = self.count if self.share is None else max(1, int(matching * self.share + 0.5))
        return min(wanted, matching)


@dataclass(frozen=True, slots=True)
class Trigger:
    """``when`` of a fault: something that happens in the run."""

    statement: Expectation
    nth: int = 1
    """Which time, from the start of the run."""
    after_ns: int = 0
    """How much later the fault comes."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One item of ``chaos``."""

    id: str
    what: str
    """The name of its kind: see :mod:`kemu.runtime.faults.kinds`."""
    at_ns: int | None
    """None: it recurs, after ``every``, or comes ``when`` something happens."""
    every: Any = None
    """Seconds or a distribution of seconds."""
    from_ns: int = 0
    until_ns: int | None = None
    for_ns: int | None = None
    """When it ends by itself, counted from its beginning."""
    actors: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """By parameter: names or patterns; two groups of them for two sides, otherwise one. A machine goes by the name of
    its kubelet."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The others, as the format has them; times in seconds."""
    choice: VictimCount = VictimCount()
    """How many of the actors that match each pattern."""
    when: Trigger | None = None
    place: str = field(default="", compare=False)
    """``file:line:column`` of the word that names its kind."""

    def patterns(self) -> list[str]:
        """Patterns of all actors that it may concern."""
        if self.what in PROCESS_FAULTS:
            return ["*"]
        return [pattern for groups in self.actors.values() for group in groups for pattern in group]


@dataclass(frozen=True)
class Scenario:
    """Everything a run needs to know."""

    name: str
    description: str
    file: str
    """Where it was read from, for messages and for the command that replays."""
    document: Document
    """As read, with what was overridden; of a variant, with its values."""
    resolved: Mapping[str, Any]
    """The same with what stood in other files."""
    seed: int
    duration_ns: int
    runtime: str
    """``sim wall ray real``."""
    cells: Mapping[str, str | int]
    """Who shares a process on Ray, by kind of actor, where the scenario says so."""
    speed: float
    """Virtual seconds for each real one (``ray``)."""
    nodes: tuple[Node, ...]
    schedulers: tuple[Scheduler, ...]
    extenders: tuple[Extender, ...]
    autoscaler: Autoscaler | None
    descheduler: policies.Settings | None
    queues: queue_settings.Settings | None
    api_servers: ApiServers
    event_objects: str
    """Which Event objects actors write: ``notable all none``."""
    pod_statuses: str
    """Which statuses of pods kubelets write: ``exact sparing``."""
    metrics: bool
    """Actors also log what only metrics need."""
    heartbeats: str
    """``standing``: kubelets state theirs where it makes no difference; ``exact``: they send them."""
    store: Store
    images: Mapping[str, int]
    """Sizes in bytes, by name with tag."""
    timing: Mapping[str, Any]
    """Latencies and costs: seconds, or distributions of seconds."""
    devices: bool
    """Whether it speaks of devices."""
    storage: Storage | None
    """None: the scenario has no volumes."""
    references: References | None
    """Whether what pods name has to be there; None: it is taken to be."""
    setup: tuple[Manifest, ...]
    """Namespaces, priority classes and manifests, in the order of their creation."""
    events: tuple[Event, ...]
    """In the order of their times; those of one instant in the order of the file."""
    workloads: tuple[Workload, ...]
    lives: tuple[PodLives, ...]
    programs: bool
    """Whether containers that do not say how they live do what their command or image does."""
    controllers: Mapping[str, Controller]
    """Settings by name; those that run."""
    bugs: tuple[str, ...]
    """Names of :mod:`kemu.emulated.variants`: what ``bugs`` switches on and ``fixes`` off."""
    streams: str
    """``shared`` or ``perKind``: on which Watch streams its actors see the kinds that they watch."""
    chaos: tuple[Fault, ...]
    holds: tuple[Hold, ...]
    """Messages that are kept back (``sim``)."""
    ablate: tuple[str, ...]
    """The safeguards that its actors lack: names of :mod:`kemu.emulated.variants`, in the order of that table."""
    checks: Checks
    measure: Window
    """What of the run its figures count."""
    until: Expectation | None
    expectations: tuple[Expectation, ...]
    """Without comparisons; of a variant, only those that count in it."""
    comparisons: tuple[Expectation, ...]
    """Judged over all variants of the matrix."""
    matrix: Mapping[str, tuple[Any, ...]]
    """Path below spec → values."""
    variants: list[tuple[Mapping[str, Any], Scenario]] = field(default_factory=list)
    """One for every combination of the matrix; empty without. See :func:`kemu.lab.scenario.loading.loader.variants`."""

    users: Mapping[str, User] = field(default_factory=dict)
    """By name."""
    warnings: tuple[errors.Problem, ...] = ()
    """What is right, but hardly meant; those of a variant are among the scenario's."""

    def to_yaml(self) -> str:
        """The resolved document: overrides applied, files taken in (but not a trace's, of which it keeps the digest).

        Loading it again gives the same scenario.
        """
        return self._text

    @functools.cached_property
    def _text(self) -> str:
        """Large definitions take half a second."""
        return str(
            yaml.dump(
                self.resolved,
                Dumper=_Dumper,
                sort_keys=False,
                allow_unicode=True,
                default_flow_style=None,
                width=120,
            )
        )


class _Dumper(yaml.SafeDumper):
    """Writes nothing as an anchor, so that a value edited by hand changes in one place only."""

    def ignore_aliases(self, data: Json) -> bool:
        return True
