"""What a scenario expects of its run, as data. :mod:`kemu.lab.checks` judges it on the run log.

An expectation has a subject and a statement about it. Times are in nanoseconds from the start of the run; a window is
closed at both ends, and an end that is None is open.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.objects import resources
from kemu.emulated.objects.plain import Json
from kemu.emulated.settings import paths
from kemu.lab.checks import costs, counters
from kemu.runtime.words import short

METRICS = ("waiting.p50_s", "waiting.p99_s", "waiting.max_s", "overtaken.p99", "overtaken.max", *costs.COSTS)
"""What ``metric`` and ``compare`` may look at besides the counters and ``refused.<reason>``."""
BY_PRIORITY = ("waiting", "overtaken", "running")
"""The families of metrics that are told of the pods of one priority, too."""

COUNTERS = counters.COUNTERS


@dataclass(frozen=True, slots=True)
class Statement:
    """Something about one pod."""

    what: str
    """A fact with a time (:class:`kemu.lab.checks.history.facts.Fact`), or ``phase`` (at the end) or ``waited``."""
    never: bool = False
    """The contrary: no such fact in the window."""
    node: str | None = None
    by: str | None = None
    """``preempted``: the preemptor, ``namespace/name``. ``bound``, ``unschedulable``: the scheduler, ``<name>`` or
    ``<name>/<replica>``."""
    reason: str | None = None
    """``rejected``, ``evicted``: as in the pod's status, ``OutOfcpu``. ``condition``: its type. ``tainted``: the
    key."""
    status: str | None = None
    """``condition``: ``True False Unknown``. ``tainted``: the effect."""
    phase: str | None = None
    """``phase``, ``finished``."""
    after_ns: int | None = None
    before_ns: int | None = None
    at_least_ns: int | None = None
    """``waited``."""
    at_most_ns: int | None = None
    """``waited``."""
    bounds: Bounds | None = None
    """``scored``."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a number; None: no bound."""

    equals: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    def allow(self, value: float) -> bool:
        return (
            (self.equals is None or value == self.equals)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """Several pods, as far as they were created; one of the three is set."""

    workload: str | None = None
    selector: Mapping[str, Any] | None = None
    """A LabelSelector as JSON: ``matchLabels``, ``matchExpressions``."""
    names: tuple[str, ...] | None = None
    """``namespace/name``."""


@dataclass(frozen=True, slots=True)
class PodIs:
    """``{pod: a, bound: {}}``"""

    pod: str
    """``namespace/name``."""
    statement: Statement


@dataclass(frozen=True, slots=True)
class PodsAre:
    """``{pods: {workload: w}, all: {running: {}}}``"""

    selection: Selection
    quantifier: str
    """``all any none count``. ``all`` of no pods at all does not hold."""
    statement: Statement
    bounds: Bounds
    """Bounds of ``count``."""


@dataclass(frozen=True, slots=True)
class NodeIs:
    """``{node: node-1, condition: {type: MemoryPressure, status: "True"}}``"""

    node: str
    statement: Statement


@dataclass(frozen=True, slots=True)
class BudgetIs:
    """``{pdb: web, healthy: {atLeast: 114}}``: the healthy pods of a disruption budget never are fewer in the window.

    Without ``after`` the window begins when they first are so many.
    """

    budget: str
    """``namespace/name``."""
    at_least: int | None
    """None: as many as the budget wants at that time."""
    after_ns: int | None
    before_ns: int | None


@dataclass(frozen=True, slots=True)
class CounterIs:
    """``{counter: preemptions, equals: 2}``"""

    counter: str
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class CheckIs:
    """``{check: no-node-overcommitted, holds: false}``"""

    check: str
    holds: bool


@dataclass(frozen=True, slots=True)
class MetricIs:
    """``{metric: utilisation.cpu, atLeast: 0.6}``"""

    metric: str
    """One of METRICS, a counter, or ``refused.<reason>``."""
    priority: int | None
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class RefusedIs:
    """``{refused: {kind: Pod, name: a, reason: Forbidden}}``; what is None is not asked for."""

    kind: str | None
    name: str | None
    """``namespace/name``, or the name alone of an object without a namespace."""
    reason: str | None
    verb: str | None
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class EventIs:
    """``{event: {reason: Preempted, about: a}}``; what is None is not asked for."""

    reason: str
    about: str | None
    """Name, or ``namespace/name``."""
    kind: str | None
    bounds: Bounds


@dataclass(frozen=True, slots=True)
class ObjectIs:
    """``{object: {kind: Pod, name: a}, field: spec.priority, equals: 1000}``, at the end of the run."""

    kind: str
    namespace: str
    name: str
    field: tuple[str | int, ...]
    """Steps of its path; empty: the object as a whole."""
    states_value: bool
    equals: Any
    bounds: Bounds
    exists: bool


@dataclass(frozen=True, slots=True)
class FaultIs:
    """``{fault: the-store-dies, hit: true}``"""

    fault: str
    hit: bool


@dataclass(frozen=True, slots=True)
class InOrder:
    """``{order: [{pod: c, bound: {}}, {pod: d, bound: {}}]}``: the first such fact of each, one before the next.

    A step that stands there again means the next such fact.
    """

    steps: tuple[PodIs, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """``{compare: {metric: waiting.p99_s, of: …, timesThatOf: …, atLeast: 2}}``: judged on the whole matrix."""

    metric: str
    """One of METRICS, or a counter."""
    priority: int | None
    of: Mapping[str, Any]
    """Path → value: exactly one variant has them; see :func:`kemu.lab.scenario.loading.matrices.matches`."""
    times_that_of: Mapping[str, Any]
    at_least: float | None
    at_most: float | None


Subject = (
    PodIs
    | PodsAre
    | NodeIs
    | BudgetIs
    | CounterIs
    | CheckIs
    | MetricIs
    | RefusedIs
    | EventIs
    | ObjectIs
    | FaultIs
    | InOrder
    | Comparison
)


@dataclass(frozen=True, slots=True)
class Expectation:
    """One item of ``expect``, or ``until``."""

    id: str
    """Given by the user, or made from the text."""
    text: str
    """The expectation as its author wrote it, in one line."""
    subject: Subject
    line: int = 0
    """Where it stands in the file."""
    when: Mapping[str, Any] = field(default_factory=dict)
    """Path → value: it counts only in variants that have them."""


# --- from the checked document ---------------------------------------------------------------------------------------


def read(checked: Mapping[str, Any], raw: Any, line: int) -> Expectation | None:
    """An expectation from what :mod:`kemu.lab.scenario.format.keys.expectation_keys` made of it; None: a mistake."""
    subject = _subject(checked)
    if subject is None:
        return None
    text = _text({key: value for key, value in raw.items() if key not in ("id", "when")})
    return Expectation(checked.get("id") or _name(subject), text, subject, line, checked.get("when", {}))


def unique(expectation: Expectation, ids: dict[str, int]) -> Expectation:
    """With a number behind its id where the id is taken already; ``ids`` counts them."""
    ids[expectation.id] = ids.get(expectation.id, 0) + 1
    number = ids[expectation.id]
    return expectation if number == 1 else dataclasses.replace(expectation, id=f"{expectation.id}#{number}")


def cannot_end_a_run(expectation: Expectation) -> str:
    """Why this can not be ``until``; empty if it can."""
    subject = expectation.subject
    if isinstance(subject, BudgetIs | Comparison | CheckIs | MetricIs | ObjectIs):
        return "must be something that happens during the run"
    if isinstance(subject, PodIs | PodsAre | NodeIs):
        if subject.statement.never:
            return "must be something that happens, not something that does not"
        if subject.statement.what == "phase":
            return (
                "must be something that happens during the run; a phase is judged at its end: say running or finished"
            )
    return ""


def can_be_counted(expectation: Expectation) -> bool:
    """Whether it can come true a second time: of a counter or a number of pods one says how much instead."""
    subject = expectation.subject
    if isinstance(subject, PodIs | NodeIs) or (isinstance(subject, PodsAre) and subject.quantifier == "any"):
        return subject.statement.what != "waited"
    return False


def speaks_of_scores(expectations: Iterable[Expectation]) -> bool:
    """Whether schedulers have to log the scores of nodes, which they do not by themselves."""
    return any(
        statement.what == "scored"
        for expectation in expectations
        for statement in (
            [expectation.subject.statement]
            if isinstance(expectation.subject, PodIs | PodsAre)
            else [step.statement for step in expectation.subject.steps]
            if isinstance(expectation.subject, InOrder)
            else []
        )
    )


def _name(subject: Subject) -> str:
    """``c.bound``, ``small.all.running``, ``preemptions``."""
    match subject:
        case PodIs():
            words = [
                short(subject.pod),
                *(["never"] * subject.statement.never),
                subject.statement.what,
            ]
        case PodsAre():
            selection = subject.selection.workload or ("selected" if subject.selection.selector is not None else "some")
            words = [selection, subject.quantifier, *(["never"] * subject.statement.never), subject.statement.what]
        case NodeIs():
            statement = subject.statement
            words = [subject.node, *(["never"] * statement.never), statement.what, *filter(None, [statement.reason])]
        case BudgetIs():
            words = ["pdb", short(subject.budget), "healthy"]
        case CounterIs():
            words = [subject.counter]
        case CheckIs():
            words = [subject.check]
        case MetricIs():
            words = [subject.metric]
        case RefusedIs():
            name = short(subject.name or "")
            words = ["refused", *filter(None, [subject.verb, name or subject.kind, subject.reason])]
        case EventIs():
            words = ["event", *filter(None, [subject.about, subject.reason])]
        case ObjectIs():
            words = [subject.kind, subject.name, *(str(step) for step in subject.field)]
        case FaultIs():
            words = [subject.fault, *(["hit"] if subject.hit else ["missed"])]
        case InOrder():
            words = ["order", *(short(step.pod) for step in subject.steps)]
        case Comparison():
            words = ["compare", subject.metric]
    return ".".join(words)


def _subject(checked: Mapping[str, Any]) -> Subject | None:
    try:
        if "pod" in checked:
            return PodIs(full_name(checked["pod"]), _statement(checked))
        if "pods" in checked:
            return _pods(checked)
        if "node" in checked:
            return NodeIs(checked["node"], _node_statement(checked))
        if "pdb" in checked:
            healthy = checked["healthy"]
            window = healthy.get("after"), healthy.get("before")
            return BudgetIs(full_name(checked["pdb"]), healthy.get("atLeast"), *window)
        if "counter" in checked:
            return CounterIs(checked["counter"], _bounds(checked))
        if "check" in checked:
            return CheckIs(checked["check"], checked.get("holds", True))
        if "metric" in checked:
            return MetricIs(checked["metric"], checked.get("priority"), _bounds(checked))
        if "refused" in checked:
            return _refused(checked["refused"])
        if "event" in checked:
            event = checked["event"]
            return EventIs(event["reason"], event.get("about"), event.get("kind"), _times(event))
        if "object" in checked:
            return _object(checked)
        if "fault" in checked:
            return FaultIs(checked["fault"], checked.get("hit", True))
        if "order" in checked:
            steps = (PodIs(full_name(step["pod"]), _statement(step)) for step in checked["order"])
            return InOrder(tuple(steps))
        compare = checked["compare"]
        return Comparison(
            compare["metric"],
            compare.get("priority"),
            compare["of"],
            compare["timesThatOf"],
            compare.get("atLeast"),
            compare.get("atMost"),
        )
    except (LookupError, AttributeError, TypeError, ValueError):
        return None  # a part of it was refused and reported


def _refused(refused: Mapping[str, Any]) -> RefusedIs:
    kind, name = refused.get("kind"), refused.get("name")
    if name is not None and (kind is None or kind not in resources.BY_KIND or resources.BY_KIND[kind].namespaced):
        name = full_name(name)
    return RefusedIs(kind, name, refused.get("reason"), refused.get("verb"), _times(refused))


def _object(checked: Mapping[str, Any]) -> ObjectIs:
    target = checked["object"]
    field = paths.parse(checked["field"], "spec.priority") if "field" in checked else ()
    bounds = Bounds(None, checked.get("atLeast"), checked.get("atMost"))
    namespace = target.get("namespace", "default")
    return ObjectIs(
        target["kind"], namespace, target["name"], field, "equals" in checked, checked.get("equals"), bounds,
        checked.get("exists", True),
    )  # fmt: skip


def as_selector(stated: Mapping[str, Any]) -> Mapping[str, Any]:
    """A LabelSelector, for which its labels may stand."""
    return stated if "matchLabels" in stated or "matchExpressions" in stated else {"matchLabels": stated}


def _pods(checked: Mapping[str, Any]) -> PodsAre:
    pods = checked["pods"]
    names = pods.get("names")
    selector = pods.get("selector")
    if selector is not None:
        selector = as_selector(selector)
    selection = Selection(
        pods.get("workload"),
        selector,
        None if names is None else tuple(full_name(name) for name in names),
    )
    quantifier = next((word for word in ("all", "any", "none", "count") if word in checked), "")
    if quantifier == "count":
        count = checked["count"]
        return PodsAre(selection, "count", _statement(count["is"]), _bounds(count))
    return PodsAre(selection, quantifier, _statement(checked[quantifier]), Bounds())


def _statement(checked: Mapping[str, Any]) -> Statement:
    if "never" in checked:
        ((what, detail),) = checked["never"].items()
        return _fact(what, detail, never=True)
    if checked.get("neverBound"):
        return Statement("bound", never=True)
    if "phase" in checked:
        return Statement("phase", phase=checked["phase"])
    if "waited" in checked:
        waited = checked["waited"]
        return Statement("waited", at_least_ns=waited.get("atLeast"), at_most_ns=waited.get("atMost"))
    what = next((key for key in checked if key not in ("pod", "id", "when")), "")
    return _fact(what, checked[what], never=False)


def _node_statement(checked: Mapping[str, Any]) -> Statement:
    never = "never" in checked
    ((what, detail),) = (checked["never"] if never else _without(checked, "node", "id", "when")).items()
    status = detail.get("status", detail.get("effect"))
    return Statement(
        what,
        never,
        reason=detail.get("type", detail.get("key")),
        status=str(status) if status is not None else None,
        after_ns=detail.get("after"),
        before_ns=detail.get("before"),
    )


def _without(checked: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in checked.items() if key not in keys}


def _fact(what: str, detail: Mapping[str, Any], *, never: bool) -> Statement:
    by = detail.get("by")
    bounds = _bounds(detail)
    return Statement(
        what,
        never,
        node=detail.get("node"),
        by=full_name(by) if by is not None and what == "preempted" else by,
        reason=detail.get("reason"),
        phase=detail.get("phase"),
        after_ns=detail.get("after"),
        before_ns=detail.get("before"),
        bounds=None if bounds == Bounds() else bounds,
    )


def _times(checked: Mapping[str, Any]) -> Bounds:
    """How often; at least once where nothing is said."""
    bounds = _bounds(checked)
    return Bounds(at_least=1) if bounds == Bounds() else bounds


def _bounds(checked: Mapping[str, Any]) -> Bounds:
    return Bounds(checked.get("equals"), checked.get("atLeast"), checked.get("atMost"))


def full_name(name: str) -> str:
    """``namespace/name`` of a pod or budget written with or without its namespace."""
    return name if "/" in name else f"default/{name}"


def _text(data: Json) -> str:
    """Data in one line, as YAML in flow style without quotes."""
    if isinstance(data, Mapping):
        return "{" + ", ".join(f"{key}: {_text(value)}" for key, value in data.items()) + "}"
    if isinstance(data, list):
        return "[" + ", ".join(_text(item) for item in data) + "]"
    if isinstance(data, bool):
        return str(data).lower()
    return f"{data:g}" if isinstance(data, float) else str(data)
