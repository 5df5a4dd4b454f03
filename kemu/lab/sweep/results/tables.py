"""The tables of results and their columns. docs/results.md is made from this module.

Times are virtual seconds from the start of the run. A name ends with its unit: ``_s``, ``_bytes``, ``_milli``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kemu.emulated.settings import paths
from kemu.lab.checks import costs
from kemu.lab.scenario import expectations

TEXT, TEXTS, INTEGER, NUMBER, BOOLEAN, COUNTS = "text", "texts", "integer", "number", "boolean", "counts"
NUMBERS = "numbers"
"""Types of columns; ``counts`` are integers by text, ``numbers`` numbers by text."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    doc: str


def _columns(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


IDENTITY = _columns(
    ("variant", TEXT, "what makes the variant, as `queue=fifo nomination=off`; empty where nothing varies"),
    ("variant_index", INTEGER, "its number, from 0, in the order of the experiment or matrix"),
    ("seed", INTEGER, "of every random draw"),
)
"""What tells a run from the others, in every table; behind it stands a column for each path that varies."""

RUN = _columns(
    ("status", TEXT, "`done`; `saturated`: ended at a limit, as the cluster cannot keep up; `failed`: without figures"),
    ("detail", TEXT, "why it is not done"),
    ("verdict", TEXT, "`holds`, `fails` or `unknown`"),
    ("digest", TEXT, "SHA-256 of the run log"),
    ("ended", TEXT, "`idle`, `deadline`, `stopped`, `interrupted` or `lost`"),
    ("virtual_s", NUMBER, "how long the run took in virtual time"),
    ("variant_json", TEXT, "the values of the variant by path, as JSON"),
    ("lower_bounds", TEXTS, "metrics that are lower bounds: a pod still waited when it was removed or the run ended"),
    ("upper_bounds", NUMBERS, "by metric: what such a metric is at most, however long they wait, if that is known"),
)  # fmt: skip

_WAITING = {"p50_s": "median", "p99_s": "99th percentile of the", "max_s": "longest"}
_DOCS = {
    **{f"waiting.{key}": f"{which} wait from creation to binding, in seconds" for key, which in _WAITING.items()},
    **{f"running.{key}": f"{which} time from creation to running, in seconds" for key, which in _WAITING.items()},
    "overtaken.p99": "the 99th percentile of how often a pod was overtaken while it waited",
    "overtaken.max": "how often the most overtaken pod was",
    "utilisation.cpu": "the share of allocatable CPU that running pods had requested, in the time measured (0 to 1)",
    "utilisation.memory": "the same of memory",
    "work.killed_pod_s": "pod-seconds that pods had run when they were preempted, evicted or OOM-killed",
    "ready.fewest": "the fewest pods that were ready, and not being deleted, at any time measured",
    "ready.missing_pod_s": "pod-seconds by which fewer pods were ready than when the time measured began",
    "ready.restored_s": "until as many pods were ready for good as when the time measured began; to its end if never",
    "overloaded_s": "from when the time measured began until an API server last refused one request too many",
    "settled_s": "from when the time measured began until the last change of a pod or node in it",
    "preemptions.wasted": "victims whose preemptor was not bound to their node",
    "preemptions.indirect": "victims whose preemptor took the place of a victim",
    "preemptions.depth": "the longest cascade: victims each preempted by the replacement of the one before",
    "decisions.per_binding": "scheduling attempts for each binding",
    "bill.node_hours": "hours that the machines of node groups ran",
    "bill.money": "what they cost, by the prices of their groups",
}  # fmt: skip

METRICS = tuple(Column(name, NUMBER, _DOCS.get(name, "")) for name in expectations.METRICS)
COUNTERS = tuple(Column(name, INTEGER, "counter") for name in expectations.COUNTERS)
BY_PRIORITY = tuple(column for column in METRICS if column.name.partition(".")[0] in expectations.BY_PRIORITY)
REFUSED = costs.REFUSED
"""What the names of further columns of ``runs`` begin with: one for each reason for which a request was refused."""

PRIORITIES = (
    *_columns(
        ("priority", INTEGER, "of the pods"),
        ("pods", INTEGER, "how many a scheduler had to place"),
        ("unbound", INTEGER, "how many of them were never bound"),
    ),
    *BY_PRIORITY,
    *_columns(("lower_bounds", TEXTS, "as in `runs`"), ("upper_bounds", NUMBERS, "as in `runs`")),
)

PODS = _columns(
    ("namespace", TEXT, "of the pod"),
    ("name", TEXT, "of the pod"),
    ("workload", TEXT, "of the scenario; empty for other pods"),
    ("owner", TEXT, "`<kind>/<name>` of its controller, or `workload/<name>`, or its own name"),
    ("scheduler", TEXT, "`<name>/<replica>` that bound it; before that, the name of the scheduler that has to"),
    ("priority", INTEGER, "as admission set it"),
    ("cpu_milli", INTEGER, "requested CPU in millicores"),
    ("memory_bytes", INTEGER, "requested memory"),
    ("node", TEXT, "to which it is bound; empty: none"),
    ("phase", TEXT, "at the end, or when it was removed"),
    ("reason", TEXT, "why it was rejected, evicted, preempted or killed, if it was: as in its status"),
    ("created_s", NUMBER, "when the store had it"),
    ("bound_s", NUMBER, "when it was bound; null: never"),
    ("running_s", NUMBER, "when its containers ran; null: never"),
    ("finished_s", NUMBER, "when its containers had ended, for whatever reason; null: they had not"),
    ("deleted_s", NUMBER, "when the object was gone; null: it is still there"),
    ("waited_s", NUMBER, "from creation to binding, removal or the end of the run; null: unscheduled, or not measured"),
    ("censored", BOOLEAN, "it was never bound, so that `waited_s` is only a lower bound; null as `waited_s`"),
    ("attempts", INTEGER, "of schedulers to place it"),
    ("overtaken", INTEGER, "pods created later, of no higher priority, that were bound while it waited"),
    ("preempted", INTEGER, "how often it was"),
    ("preempted_by", TEXT, "the last preemptor, `namespace/name`; null: none"),
    ("evicted", INTEGER, "how often it was"),
    ("rejected", INTEGER, "how often a kubelet has rejected it"),
    ("oom_killed", INTEGER, "how often it was"),
    ("replaces", TEXT, "`namespace/name` of the pod whose place it takes; empty: none"),
    ("uid", TEXT, "of the pod; a name may be used again"),
)  # fmt: skip

ATTEMPTS = _columns(
    ("pod", TEXT, "`namespace/name`"),
    ("scheduler", TEXT, "`<name>/<replica>`"),
    ("start_s", NUMBER, "when the scheduling cycle began"),
    ("cost_s", NUMBER, "how long it took"),
    ("outcome", TEXT, "`scheduled`, `unschedulable`, `error` or `skipped`"),
    ("node", TEXT, "that was chosen; empty: none"),
    ("evaluated_nodes", INTEGER, "nodes that were filtered"),
    ("feasible_nodes", INTEGER, "nodes that passed the filters"),
    ("refused_nodes", COUNTS, "nodes that each plugin refused, by plugin"),
    ("uid", TEXT, "of the pod"),
)

FAULTS = _columns(
    ("id", TEXT, "of the fault in the scenario"),
    ("kind", TEXT, "`crash`, `partition`, `delay` …"),
    ("from_s", NUMBER, "when it began"),
    ("to_s", NUMBER, "when it ended; null: it has no end, or lasted until the run ended"),
    ("targets", TEXTS, "the actors or nodes that it is about"),
    ("hits", TEXTS, "whom it struck: an actor, or `sender → receiver`"),
)

NODES = _columns(
    ("name", TEXT, "of the node"),
    ("added_s", NUMBER, "when it first joined the cluster"),
    ("removed_s", NUMBER, "when it last left; null: it is there at the end"),
    ("cpu_milli", INTEGER, "allocatable CPU when it joined, in millicores"),
    ("memory_bytes", INTEGER, "allocatable memory when it joined"),
)

NESTED: Mapping[str, tuple[Column, ...]] = {
    "priorities": PRIORITIES,
    "pods": PODS,
    "attempts": ATTEMPTS,
    "faults": FAULTS,
    "nodes": NODES,
}
"""The tables that the file holds as a list of structs in each run. The counter ``faults`` is the length of its list."""

DOCS = {
    "runs": "one row for each run",
    "priorities": "the metrics of the pods of each priority, of those that a scheduler had to place",
    "pods": "every pod that was created",
    "attempts": "every attempt of a scheduler to place a pod",
    "faults": "what chaos did",
    "nodes": "every node that was added",
}


SEED = "seed"
"""A path that a matrix may vary; it has its column in any case."""


def axis_columns(varied: Sequence[str]) -> dict[str, str]:
    """Path → the name of its column: its last part; the whole path where another column has that name; with ``vary.``
    before it where one has even that."""
    lasts = [last_part(path) for path in varied]
    taken = {column.name for column in (*IDENTITY, *RUN, *METRICS, *COUNTERS)} | set(NESTED)
    taken |= {column.name for columns in NESTED.values() for column in columns}
    found = {}
    for path, last in zip(varied, lasts, strict=True):
        if path != SEED:
            whole = path if path not in taken else f"vary.{path}"
            found[path] = last if lasts.count(last) == 1 and last not in taken else whole
    return found


def last_part(path: str) -> str:
    """``queue`` of ``schedulers[0].policy.queue``; a name that is no path is itself the part."""
    try:
        names = [step for step in paths.parse(path, "") if isinstance(step, str)]
    except ValueError:
        return path
    return names[-1] if names else path


def names(columns: Iterable[Column]) -> list[str]:
    return [column.name for column in columns]


def fingerprint() -> str:
    """Fingerprint of all tables and the names and types of their columns: rows that were kept by another version may
    lack some."""
    columns = {"runs": (*IDENTITY, *RUN, *METRICS, *COUNTERS), **NESTED}
    listed = {table: [(column.name, column.type) for column in found] for table, found in columns.items()}
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()
