"""Checks that the names in a scenario exist: Pods, nodes, classes, namespaces, schedulers, checks, counters.

Role: the last step of :mod:`kemu.lab.scenario.loading.loader`, over all parts of the scenario together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kemu.emulated.autoscaler import clouds
from kemu.emulated.autoscaler.settings import AUTOSCALER
from kemu.emulated.controllers.settings import Controller
from kemu.emulated.objects import custom_kinds, resources, selectors
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import pods
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import THERE_ARE, Report
from kemu.emulated.settings.values import duration_text
from kemu.lab.checks import costs, registry
from kemu.lab.scenario import expectations, scenarios
from kemu.lab.scenario.format import traces
from kemu.lab.scenario.format.clusters import Extender, Node, Scheduler
from kemu.lab.scenario.format.events import Event
from kemu.lab.scenario.format.workloads import Workload
from kemu.lab.scenario.loading import clusters
from kemu.lab.scenario.loading.mistakes import Excuses
from kemu.lab.scenario.loading.objects import manifests
from kemu.lab.scenario.loading.objects.manifests import Declared
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject, CustomResourceDefinition
from kemu.runtime.words import did_you_mean, short

RESCHEDULER = "rescheduler"
"""The controller that runs when a scheduler leaves preemption to it."""


class Names:
    """What a scenario declares. ``stated``: kind, namespace and name of its objects, also of those with mistakes.

    ``any_pod``: there may be others.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        schedulers: Sequence[Scheduler],
        extenders: Sequence[Extender],
        workloads: Sequence[Workload],
        events: Sequence[Event],
        *,
        apiservers: int,
        controllers: Mapping[str, Controller],
        priority_classes: Iterable[str],
        raw_workloads: Iterable[str],
        stated: Iterable[tuple[str, str, str]],
        more_namespaces: Iterable[str] = (),
        node_groups: Sequence[scenarios.NodeGroup] = (),
        any_pod: bool = False,
        excuses: Excuses | None = None,
    ) -> None:
        self.workloads = {workload.name: workload for workload in workloads}
        self.workload_names = [*raw_workloads]
        self.faults: list[str] = []
        """Their ids; they are read when the names of the actors are known."""
        self.nodes = [node.name for node in nodes]
        self.pods: list[str] = []
        self.priority_classes = [*clusters.SYSTEM_PRIORITY_CLASSES, *priority_classes]
        self.runtime_classes: list[str] = []
        self.budgets: list[str] = []
        self.namespaces = [*clusters.NAMESPACES, *more_namespaces]
        self.stateful_sets: set[str] = set()
        for kind, namespace, name in stated:
            if kind == "Pod":
                self.pods.append(f"{namespace}/{name}")
            elif kind == "PodDisruptionBudget":
                self.budgets.append(f"{namespace}/{name}")
            elif kind == "StatefulSet":
                self.stateful_sets.add(f"{namespace}/{name}")
            elif kind == "Node":
                self.nodes.append(name)
            elif kind == "PriorityClass":
                self.priority_classes.append(name)
            elif kind == "RuntimeClass":
                self.runtime_classes.append(name)
            elif kind == "Namespace":
                self.namespaces.append(name)
        kubelets = [node.name for node in nodes]
        self.pods += _mirror_pods(nodes)
        for event in events:
            self.pods += _mirror_pods(event.nodes)
            added = [node.name for node in event.nodes]
            self.nodes += added
            kubelets += added
        self._groups = [group.name for group in node_groups]
        for group in node_groups:
            coming = [clouds.node_name(group.name, number) for number in range(1, group.settings.max + 1)]
            coming = coming[len(group.initial) :]
            self.nodes += coming
            kubelets += coming
        self.scheduler_names: list[str] = []
        self.actors = ["store", *(f"apiserver/{number}" for number in range(apiservers))]
        for scheduler in schedulers:
            self.scheduler_names += profile_names(scheduler)
            self.actors += (f"scheduler/{scheduler.name}/{replica}" for replica in range(scheduler.replicas))
        self.actors += (f"extender/{extender.name}" for extender in extenders)
        self.actors += (f"kubelet/{name}" for name in kubelets)
        running = dict(controllers)
        if any(scheduler.policy.get("preemptor") == RESCHEDULER for scheduler in schedulers):
            running.setdefault(RESCHEDULER, Controller())
        if node_groups:
            running[AUTOSCALER] = Controller()
            self.actors.append(clouds.NAME)
        self.actors += (actor for name, one in running.items() for actor in one.actors(name))
        self._any_pod = any_pod
        self.excuses = excuses or Excuses((), "", {})
        """Names that a mistake elsewhere explains are not complained of."""
        self._traced = frozenset(_named_in_traces(workloads))
        self._known_pods = set(self.pods)
        self._known_nodes = set(self.nodes)

    def has_node(self, name: str) -> bool:
        """Whether there is such a node, or would be without a mistake elsewhere; so the others, too."""
        group, _, number = name.rpartition("-")
        if group in self._groups and number.isdigit():
            return True
        return name in self._known_nodes or self.excuses.cover(name, ("nodes", "events", "manifests"), self.nodes)

    def has_scheduler(self, name: str) -> bool:
        known = self.scheduler_names
        return name in known or self.excuses.cover(name, ("schedulers",), known)

    def has_namespace(self, name: str) -> bool:
        return name in self.namespaces or self.excuses.cover(name, ("manifests", "events"), self.namespaces)

    def has_priority_class(self, name: str) -> bool:
        known = self.priority_classes
        return name in known or self.excuses.cover(name, ("priorityClasses", "manifests"), known)

    def has_runtime_class(self, name: str) -> bool:
        return name in self.runtime_classes or self.excuses.cover(name, ("manifests",), ("",))

    def has_workload(self, name: str) -> bool:
        return name in self.workload_names or self.excuses.cover(name, ("workloads",), self.workload_names)

    def has_fault(self, name: str) -> bool:
        return name in self.faults or self.excuses.cover(name, ("chaos",), ("",))

    def may_have_actor(self, name: str) -> bool:
        """Whether a mistake elsewhere explains that no actor has this name or pattern."""
        role, _, rest = name.partition("/")
        if role == "kubelet":
            return self.excuses.cover(rest, ("nodes", "events", "manifests"), self.nodes)
        known = [actor for actor in self.actors if actor.startswith(f"{role}/")]
        section = {"scheduler": "schedulers", "extender": "extenders", "controller": "controllers"}.get(role, "")
        return self.excuses.cover(rest.partition("/")[0], (section,), known)

    def has_pod(self, full_name: str) -> bool:
        if self._any_pod or full_name in self._known_pods:
            return True
        namespace, _, name = full_name.partition("/")
        if self.excuses.cover(name, ("manifests", "events", "workloads"), self.pods or self.workload_names):
            return True
        if full_name in self._traced or traces.FORMER.sub("", full_name) in self._traced:
            return True
        found = re.fullmatch(r"(.+)-(0|[1-9][0-9]*)", name)
        if found is None:
            return False
        if f"{namespace}/{found[1]}" in self.stateful_sets:
            return True
        workload = self.workloads.get(found[1])
        if workload is None:
            # The mistakes of this workload have been reported already.
            return found[1] in self.workload_names
        is_numbered = workload.trace is None or not workload.trace.names
        return is_numbered and workload.namespace == namespace and int(found[2]) < most_pods(workload)


def _named_in_traces(workloads: Iterable[Workload]) -> Iterator[str]:
    """``namespace/name`` of the pods whose names stand in traces."""
    for workload in workloads:
        trace = workload.trace
        if trace is not None and trace.names:
            namespaces = [template.metadata.namespace for template in trace.templates]
            for name, template in zip(trace.names, trace.template, strict=True):
                yield f"{namespaces[template]}/{name}"


def _mirror_pods(nodes: Iterable[Node]) -> list[str]:
    """By what the API server knows the static pods of nodes."""
    return [f"{pod.metadata.namespace}/{pod.metadata.name}-{node.name}" for node in nodes for pod in node.static_pods]


def most_pods(workload: Workload) -> float:
    """How many pods a workload makes at most."""
    if workload.replace_finished:
        return float("inf")
    if workload.trace is not None:
        return len(workload.trace.at_ns)
    assert workload.arrivals is not None
    return float("inf") if workload.arrivals.count is None else workload.arrivals.count


def profile_names(scheduler: Scheduler) -> list[str]:
    """The ``schedulerName`` of the pods that it serves."""
    profiles = scheduler.config.get("profiles") if isinstance(scheduler.config, Mapping) else None
    if scheduler.factory or not isinstance(profiles, list) or not profiles:
        return [scheduler.name]
    return [str(profile.get("schedulerName", scheduler.name)) for profile in profiles if isinstance(profile, Mapping)]


def check_unique(items: Sequence[tuple[str, Path]], what: str, report: Report) -> None:
    """Complain about the second of two equal names. ``items``: name and the path that says it."""
    seen: dict[str, Path] = {}
    for name, path in items:
        if name in seen:
            first = report.document.place(seen[name])
            report.add(path, f"a second {what} is called {name}", f"the first is in line {first.line}")
        seen.setdefault(name, path)


def check_objects(declared: Sequence[Declared], names: Names, node_names: Iterable[str]) -> None:
    """Names of objects are unique per kind; what pods name exists."""
    nodes = set(node_names)
    defined = {
        f"{one.message.spec.names.kind}.{one.message.spec.group}"
        for one in declared
        if isinstance(one.message, CustomResourceDefinition)
    }
    seen: set[tuple[str, str, str]] = set()
    for each in declared:
        message = each.message
        metadata = message.metadata
        resource = resources.of(message)
        if isinstance(message, CustomObject) and resource.plural not in defined:
            text = f"{message.kind} ({message.apiVersion}) is a custom resource without a definition"
            each.complain("kind", text, manifests.WITHOUT_DEFINITION)
        what = _action(each)
        if metadata.name and what != "apply":
            key = (resource.plural, metadata.namespace, metadata.name)
            again = key in seen or (resource.kind == "Node" and metadata.name in nodes)
            if again and (what == "manifest" or resource.kind == "Node"):
                each.complain("metadata.name", f"a second {resource.kind} is called {metadata.name}")
            seen.add(key)
        if resource.namespaced and not names.has_namespace(metadata.namespace):
            each.complain(
                "metadata.namespace",
                f"there is no namespace {metadata.namespace}",
                did_you_mean(metadata.namespace, names.namespaces) or "create it in manifests",
            )
        if isinstance(message, core_v1_pb2.Pod):
            _check_pod(each, message, names)


def _action(each: Declared) -> str:
    # An object of a List stands deeper.
    return next((what for what in ("apply", "create") if what in each.path[:4]), "manifest")


def _check_pod(each: Declared, pod: core_v1_pb2.Pod, names: Names) -> None:
    name = pod.spec.priorityClassName
    if name and not names.has_priority_class(name):
        hint = did_you_mean(name, names.priority_classes)
        each.complain("spec.priorityClassName", f"no PriorityClass with name {name} was found", hint)
    runtime_class = pod.spec.runtimeClassName
    if runtime_class and not names.has_runtime_class(runtime_class):
        hint = did_you_mean(runtime_class, names.runtime_classes) or "create it in manifests"
        each.complain("spec.runtimeClassName", f"there is no RuntimeClass {runtime_class}", hint)
    elif pod.spec.overhead and not runtime_class:
        each.complain("spec.overhead", "only a RuntimeClass may set it", "name the class in runtimeClassName")
    if pod.spec.nodeName and not names.has_node(pod.spec.nodeName):
        node = pod.spec.nodeName
        each.complain("spec.nodeName", f"there is no node {node}", did_you_mean(node, names.nodes[:1000]))
    scheduler = pod.spec.schedulerName or pods.DEFAULT_SCHEDULER
    if not pod.spec.nodeName and not names.has_scheduler(scheduler):
        hint = did_you_mean(scheduler, names.scheduler_names) or f"{THERE_ARE}{', '.join(names.scheduler_names)}"
        each.complain("spec.schedulerName", f"no scheduler serves {scheduler}", hint)


def check_events(events: Sequence[Event], names: Names, report: Report) -> None:
    """Events speak of pods and nodes that exist at some time."""
    for event in events:
        path: Path = ("spec", "events", event.index, event.what)
        resource, namespace, name = event.target
        if resource == "pods" and name:
            full = f"{namespace}/{name}"
            if not names.has_pod(full):
                _unknown_pod(full, _deepest(path, ("pod", "name"), report), names, report)
        elif resource == "nodes" and name and not names.has_node(name):
            where = _deepest(path, ("node", "name"), report)
            report.add(where, f"there is no node {name}", did_you_mean(name, names.nodes[:1000]))


def _deepest(path: Path, keys: Sequence[str], report: Report) -> Path:
    return next(((*path, key) for key in keys if (*path, key) in report.document.places), path)


def _unknown_pod(full: str, path: Path, names: Names, report: Report) -> None:
    namespace, _, name = full.partition("/")
    shown = name if namespace == "default" else full
    candidates = [short(pod) for pod in names.pods[:1000]]
    workload = name.rpartition("-")[0]
    hint = did_you_mean(shown, candidates)
    if workload in names.workloads:
        hint = f"{workload} makes {most_pods(names.workloads[workload]):g} pods"
    report.add(path, f"no manifest, event or workload creates the pod {shown}", hint)


def check_expectation(
    expectation: expectations.Expectation, path: Path, names: Names, duration_ns: int, report: Report
) -> None:
    """Everything that an expectation names exists, and its windows can be."""
    subject = expectation.subject
    if isinstance(subject, expectations.PodIs):
        _check_pod_name(subject.pod, (*path, "pod"), names, report)
        _check_statement(subject.statement, path, names, duration_ns, report)
    elif isinstance(subject, expectations.PodsAre):
        _check_selection(subject.selection, (*path, "pods"), names, report)
        inner: Path = (*path, subject.quantifier)
        if subject.quantifier == "count":
            _check_bounds(subject.bounds, inner, report)
            inner = (*inner, "is")
        _check_statement(subject.statement, inner, names, duration_ns, report)
    elif isinstance(subject, expectations.NodeIs):
        if not names.has_node(subject.node):
            hint = did_you_mean(subject.node, names.nodes[:1000])
            report.add((*path, "node"), f"there is no node {subject.node}", hint)
        _check_statement(subject.statement, path, names, duration_ns, report)
    elif isinstance(subject, expectations.BudgetIs):
        if subject.budget not in names.budgets:
            name = short(subject.budget)
            hint = did_you_mean(name, [short(budget) for budget in names.budgets])
            report.add((*path, "pdb"), f"there is no PodDisruptionBudget {name}", hint)
        _check_window(subject.after_ns, subject.before_ns, (*path, "healthy"), duration_ns, report)
    elif isinstance(subject, expectations.CounterIs):
        _check_bounds(subject.bounds, path, report)
        if subject.counter not in expectations.COUNTERS:
            hint = (
                did_you_mean(subject.counter, expectations.COUNTERS) or f"{THERE_ARE}{', '.join(expectations.COUNTERS)}"
            )
            report.add((*path, "counter"), f"there is no counter {subject.counter}", hint)
    elif isinstance(subject, expectations.CheckIs):
        check_id(subject.check, (*path, "check"), report)
    elif isinstance(subject, expectations.InOrder):
        for index, step in enumerate(subject.steps):
            inner = (*path, "order", index)
            _check_pod_name(step.pod, (*inner, "pod"), names, report)
            _check_statement(step.statement, inner, names, duration_ns, report)
    elif isinstance(subject, expectations.MetricIs):
        _check_bounds(subject.bounds, path, report)
        _check_metric(subject.metric, subject.priority, path, report)
    elif isinstance(subject, expectations.RefusedIs | expectations.EventIs):
        if isinstance(subject, expectations.RefusedIs):
            _check_kind(subject.kind, (*path, "refused", "kind"), report)
    elif isinstance(subject, expectations.ObjectIs):
        _check_kind(subject.kind, (*path, "object", "kind"), report)
        if not subject.field and (subject.states_value or subject.bounds != expectations.Bounds()):
            report.add(path, "needs field, the path of what is compared")
        if subject.field and not subject.states_value and subject.bounds == expectations.Bounds() and subject.exists:
            report.add(path, "needs equals, atLeast, atMost or exists")
    elif isinstance(subject, expectations.FaultIs):
        if not names.has_fault(subject.fault):
            hint = did_you_mean(subject.fault, names.faults) or "give the fault an id"
            report.add((*path, "fault"), f"there is no fault {subject.fault}", hint)
    else:
        _check_metric(subject.metric, subject.priority, (*path, "compare"), report)
        if subject.at_least is None and subject.at_most is None:
            report.add((*path, "compare"), "needs atLeast or atMost")


def _check_metric(metric: str, priority: int | None, path: Path, report: Report) -> None:
    key, message, hint = metric_complaint(metric, priority)
    if message:
        report.add((*path, key), message, hint)


def metric_complaint(metric: str, priority: int | None) -> tuple[str, str, str]:
    """What is wrong with naming a metric so: the key (``metric`` or ``priority``), the message, a suggestion."""
    known = (*expectations.METRICS, *expectations.COUNTERS)
    if metric not in known and not metric.startswith(costs.REFUSED):
        hint = did_you_mean(metric, known) or f"{THERE_ARE}{', '.join(known)}, {costs.REFUSED}<reason>"
        return "metric", f"there is no metric {metric}", hint
    if priority is not None and metric.partition(".")[0] not in expectations.BY_PRIORITY:
        return "priority", f"{metric} is not told by priority", ""
    return "", "", ""


def _check_kind(kind: str | None, path: Path, report: Report) -> None:
    if kind is not None and kind not in resources.BY_KIND and not custom_kinds.is_custom(kind):
        report.add(path, f"unknown kind {kind}", did_you_mean(kind, resources.BY_KIND))


def check_id(check: str, path: Path, report: Report) -> None:
    if check not in registry.IDS:
        hint = did_you_mean(check, registry.IDS) or f"{THERE_ARE}{', '.join(registry.IDS)}"
        report.add(path, f"there is no check {check}", hint)


def _check_pod_name(full: str, path: Path, names: Names, report: Report) -> None:
    if not names.has_pod(full):
        _unknown_pod(full, path, names, report)


def _check_selection(selection: expectations.Selection, path: Path, names: Names, report: Report) -> None:
    if selection.workload is not None and not names.has_workload(selection.workload):
        hint = did_you_mean(selection.workload, names.workload_names)
        report.add((*path, "workload"), f"there is no workload {selection.workload}", hint)
    if selection.selector is not None:
        _check_selector(selection.selector, (*path, "selector"), report)
    for index, name in enumerate(selection.names or ()):
        _check_pod_name(name, (*path, "names", index), names, report)


def _check_selector(selector: Mapping[str, Any], path: Path, report: Report) -> None:
    try:
        selectors.compile_labels(convert.from_json(meta_v1_pb2.LabelSelector, selector))
    except convert.ConversionError as error:
        for problem in error.problems:
            report.add(path, f"{problem.path}: {problem.message}", problem.suggestion)
    except selectors.SelectorError as error:
        report.add(path, str(error))


def _check_bounds(bounds: expectations.Bounds, path: Path, report: Report) -> None:
    given = (bounds.equals, bounds.at_least, bounds.at_most)
    if all(bound is None for bound in given):
        report.add(path, "needs equals, atLeast or atMost")
    elif bounds.at_least is not None and bounds.at_most is not None and bounds.at_least > bounds.at_most:
        report.add((*path, "atLeast"), "is more than atMost")


def _check_window(after_ns: int | None, before_ns: int | None, path: Path, duration_ns: int, report: Report) -> None:
    if after_ns is not None and before_ns is not None and after_ns > before_ns:
        report.add((*path, "after"), f"is later than before: {duration_text(before_ns)}")
    elif after_ns is not None and after_ns > duration_ns:
        text = f"is after the end of the run at {duration_text(duration_ns)}"
        report.add((*path, "after"), text, "lengthen spec.duration")


def _check_statement(
    statement: expectations.Statement, path: Path, names: Names, duration_ns: int, report: Report
) -> None:
    inner: Path = (*path, "never", statement.what) if statement.never else (*path, statement.what)
    _check_window(statement.after_ns, statement.before_ns, inner, duration_ns, report)
    if statement.node is not None and not names.has_node(statement.node):
        hint = did_you_mean(statement.node, names.nodes[:1000])
        report.add((*inner, "node"), f"there is no node {statement.node}", hint)
    if statement.by is not None and statement.what == "preempted":
        _check_pod_name(statement.by, (*inner, "by"), names, report)
    elif statement.by is not None:
        schedulers = [actor.removeprefix("scheduler/") for actor in names.actors if actor.startswith("scheduler/")]
        known = [*(name.rpartition("/")[0] for name in schedulers), *schedulers]
        if statement.by not in known and not names.has_scheduler(statement.by.partition("/")[0]):
            report.add((*inner, "by"), f"there is no scheduler {statement.by}", did_you_mean(statement.by, known))
    if statement.what == "waited" and statement.at_least_ns is None and statement.at_most_ns is None:
        report.add(inner, "needs atMost or atLeast")
