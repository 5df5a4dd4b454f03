"""What happens over time in a scenario: events and workloads, from the checked document.

Role: one step of :mod:`kemu.lab.scenario.loading.loader`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from google.protobuf.message import Message

from kemu import errors
from kemu.emulated.objects import resources
from kemu.emulated.objects.fields import tables
from kemu.emulated.settings import paths
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import Report
from kemu.emulated.settings.values import duration_text
from kemu.lab.scenario import scenarios
from kemu.lab.scenario.arrivals import expected_arrivals
from kemu.lab.scenario.expectations import full_name
from kemu.lab.scenario.format.workloads import Arrivals, TraceFiles, Workload
from kemu.lab.scenario.loading import clusters
from kemu.lab.scenario.loading.objects import manifest_files, manifests, openb
from kemu.lab.scenario.loading.objects.manifests import Declared
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.words import did_you_mean

MAX_ARRIVALS = 1_000_000
"""Most arrivals of one workload: what a single run can still hold and tell about."""

POD_ACTIONS = ("evict", "finish")
NODE_ACTIONS = ("cordon", "uncordon", "taint", "untaint", "removeNode", "shutdownNode", "startNode")


def check_in_time(report: Report, duration_ns: int, when_ns: int | None, path: Path) -> None:
    if when_ns is not None and when_ns > duration_ns:
        report.add(path, f"is after the end of the run at {duration_text(duration_ns)}", "lengthen spec.duration")


class Timeline:
    """Collects what the sections say, and the objects in them for the checks that follow."""

    def __init__(
        self,
        report: Report,
        duration_ns: int,
        data_dir: FilePath | None,
        files: manifest_files.ManifestFiles,
        resolved: dict[str, Any],
    ) -> None:
        """``resolved``: the spec as the run folder has it; what stands in files is put into it."""
        self.files = files
        self.resolved = resolved
        self.stated: list[tuple[str, str, str]] = []
        """Objects that files or Lists of events hold: kind, namespace and name."""
        self.report = report
        self.duration_ns = duration_ns
        self.data_dir = data_dir
        self.events: list[scenarios.Event] = []
        self.workloads: list[Workload] = []
        self.declared: list[Declared] = []
        self.trace_nodes: list[scenarios.Node] = []
        self.trace_priority_classes: dict[str, int] = {}
        self.traces = False
        """Whether there is a trace that brings nodes of its own."""
        self.trace_digests: dict[int, str] = {}
        """By index of the workload."""

    def _in_time(self, when_ns: int | None, path: Path) -> None:
        check_in_time(self.report, self.duration_ns, when_ns, path)

    # --- events ------------------------------------------------------------------------------------------------------

    def add_events(self, checked: Sequence[Any], raw: Sequence[Any], path: Path) -> None:
        for index, item in enumerate(checked):
            if isinstance(item, dict):
                self._add_event(index, item, raw[index], (*path, index))
        self.events.sort(key=lambda event: event.at_ns)

    def _add_event(self, index: int, checked: Mapping[str, Any], raw: Mapping[str, Any], path: Path) -> None:
        at_ns = checked.get("at", 0)
        self._in_time(checked.get("at"), (*path, "at"))
        what = next((key for key in checked if key not in ("at", "as")), None)
        if what is None:
            return
        detail, where = checked[what], (*path, what)
        event: scenarios.Event | None
        if what in ("create", "apply"):
            event = scenarios.Event(index, at_ns, what, objects=self._objects(index, what, detail, where))
            if not event.objects:
                return
        elif what == "delete":
            event = self._delete(index, at_ns, detail, where)
        elif what == "patch":
            event = self._patch(index, at_ns, detail, where)
        elif what == "resize":
            event = self._resize(index, at_ns, detail, where)
        elif what == "rollout":
            event = self._rollout(index, at_ns, detail, where)
        elif what in POD_ACTIONS:
            namespace, _, name = full_name(detail.get("pod", "")).partition("/")
            event = scenarios.Event(
                index,
                at_ns,
                what,
                resource="pods",
                namespace=namespace,
                name=name,
                grace_period_s=detail.get("gracePeriodSeconds"),
                exit_code=detail.get("exitCode", 0),
            )
        elif what == "drain":
            event = scenarios.Event(index, at_ns, what, resource="nodes", name=detail.node, drain=detail)
        elif what in NODE_ACTIONS:
            taint = None
            if what in ("taint", "untaint"):
                taint = core_v1_pb2.Taint(key=detail.get("key", ""), effect=detail.get("effect", ""))
                if detail.get("value"):
                    taint.value = detail["value"]
            event = scenarios.Event(index, at_ns, what, resource="nodes", name=detail.get("node", ""), taint=taint)
        else:
            nodes = clusters.nodes(detail, raw[what], where, self.report)
            event = scenarios.Event(index, at_ns, what, nodes=tuple(nodes))
        if event is not None:
            if "as" in checked:
                if what in scenarios.OF_MACHINES:
                    self.report.add((*path, "as"), f"{what} is no request: nobody's rights matter", key=True)
                event = dataclasses.replace(event, acts_as=checked["as"])
            self.events.append(event)

    def _objects(self, index: int, what: str, detail: Any, where: Path) -> tuple[Message, ...]:
        """Objects of one event: an object, those of a List, or those of a file."""
        found = []
        sources = self.files.sources(detail, where, self.report)
        for data, path, report in sources:
            stated = manifests.stated_name(data)
            if stated is not None:
                self.stated.append(stated)
            message = manifests.read(data, path, report)
            if isinstance(message, core_v1_pb2.Node) and what == "create":
                report.add((*path, "kind"), "a Node that an event creates has no kubelet", "use addNode", key=True)
            if message is not None:
                found.append(message)
                self.declared.append(Declared(message, report, path))
        if set(detail) == {"file"}:
            items = {"apiVersion": "v1", "kind": "List", "items": [data for data, _, _ in sources]}
            self.resolved["events"][index][what] = items
        return tuple(found)

    def _delete(self, index: int, at_ns: int, detail: Mapping[str, Any], where: Path) -> scenarios.Event | None:
        grace, policy = detail.get("gracePeriodSeconds"), detail.get("propagationPolicy", "Background")
        if "pod" in detail:
            for key in ("kind", "name", "namespace"):
                if key in detail:
                    self.report.add((*where, key), "cannot stand beside pod", key=True)
            namespace, _, name = full_name(detail["pod"]).partition("/")
            return scenarios.Event(
                index, at_ns, "delete", (), "pods", namespace, name, grace_period_s=grace, propagation_policy=policy
            )
        if "kind" not in detail or "name" not in detail:
            self.report.add(where, "needs kind and name, or pod")
            return None
        resource = self._resource(detail["kind"], (*where, "kind"))
        if resource is None:
            return None
        namespace = detail.get("namespace", "default") if resource.namespaced else ""
        return scenarios.Event(
            index,
            at_ns,
            "delete",
            (),
            resource.plural,
            namespace,
            detail["name"],
            grace_period_s=grace,
            propagation_policy=policy,
        )

    def _patch(self, index: int, at_ns: int, detail: Mapping[str, Any], where: Path) -> scenarios.Event | None:
        patch_type = "strategic" if "strategic" in detail else "merge"
        resource = self._resource(detail["kind"], (*where, "kind")) if "kind" in detail else None
        if resource is None or "name" not in detail or patch_type not in detail:
            return None
        manifests.check_patch(resource, detail[patch_type], (*where, patch_type), self.report)
        namespace = detail.get("namespace", "default") if resource.namespaced else ""
        return scenarios.Event(
            index,
            at_ns,
            "patch",
            resource=resource.plural,
            namespace=namespace,
            name=detail["name"],
            patch=detail[patch_type],
            patch_type=patch_type,
            subresource=detail.get("subresource", ""),
        )

    def _resize(self, index: int, at_ns: int, detail: Mapping[str, Any], where: Path) -> scenarios.Event | None:
        """A strategic patch of the subresource ``resize``."""
        spec: dict[str, Any] = {}
        for key in ("containers", "initContainers"):
            if key in detail:
                if not isinstance(detail[key], Mapping):
                    self.report.add((*where, key), "must be a mapping from containers to requests and limits")
                    return None
                spec[key] = [{"name": str(name), "resources": one} for name, one in detail[key].items()]
        if "resources" in detail:
            spec["resources"] = detail["resources"]
        if not spec:
            self.report.add(where, "changes nothing", "state containers, initContainers or resources", key=True)
            return None
        patch = {"spec": spec}
        manifests.check_patch(resources.BY_KIND["Pod"], patch, where, self.report)
        namespace, _, name = full_name(detail.get("pod", "")).partition("/")
        return scenarios.Event(
            index,
            at_ns,
            "resize",
            resource="pods",
            namespace=namespace,
            name=name,
            patch=patch,
            patch_type="strategic",
            subresource="resize",
        )

    def _rollout(self, index: int, at_ns: int, detail: Mapping[str, Any], where: Path) -> scenarios.Event | None:
        action = next((key for key in detail if key != "toRevision"), None)
        if action is None:
            return None
        if "toRevision" in detail and action != "undo":
            self.report.add((*where, "toRevision"), "only stands beside undo", key=True)
        kind, _, name = detail[action].partition("/")
        namespace, _, name = full_name(name).partition("/")
        return scenarios.Event(
            index,
            at_ns,
            "rollout",
            resource=f"{kind}s",
            namespace=namespace,
            name=name,
            rollout=action,
            to_revision=detail.get("toRevision", 0),
        )

    def _resource(self, kind: str, path: Path) -> resources.Resource | None:
        found = resources.BY_KIND.get(kind)
        if found is None:
            self.report.add(path, f"{kind!r} is not a kind that kemu knows", did_you_mean(kind, tables.ACCEPTED))
        return found

    # --- workloads ---------------------------------------------------------------------------------------------------

    def add_workloads(self, checked: Sequence[Any], path: Path) -> None:
        for index, one in enumerate(checked):
            if not isinstance(one, Workload):
                continue
            where = (*path, index)
            self._in_time(one.start_ns, (*where, "start"))
            if one.files is not None:
                self._add_trace(index, one, one.files, where)
            elif one.arrivals is not None:
                self._add_stream(one, one.arrivals, where)

    def _add_stream(self, workload: Workload, arrivals: Arrivals, where: Path) -> None:
        until_ns = self.duration_ns if arrivals.until_ns is None else arrivals.until_ns
        arrivals = dataclasses.replace(arrivals, start_ns=workload.start_ns, until_ns=until_ns)
        expected = expected_arrivals(arrivals)
        if expected > MAX_ARRIVALS:
            text = f"would bring about {expected:.3g} pods; at most {MAX_ARRIVALS} can come"
            self.report.add((*where, "arrivals"), text, "bound them with until or count, or let them come less often")
        if workload.pods is None:
            return
        template = manifests.read_pod(workload.pods, (*where, "pods"), self.report)
        if template is None:
            return
        if workload.life.run_s is not None:
            manifests.ends(template)
        if workload.usage is not None:
            manifests.state_usage(template, workload.usage, (*where, "usage"), self.report)
        if workload.probes is not None:
            manifests.state_probes(template, workload.probes, (*where, "probes"), self.report)
        self.declared.append(Declared(template, self.report, (*where, "pods"), template=True))
        self.workloads.append(dataclasses.replace(workload, template=template, arrivals=arrivals))

    def _add_trace(self, index: int, workload: Workload, files: TraceFiles, where: Path) -> None:
        path = (*where, "trace")
        self.traces |= files.nodes is not None
        if files.pods is None:
            return
        if self.data_dir is None:
            self.report.add(path, "needs the folder that holds the trace", "give it with --data DIR")
            return
        try:
            read = openb.read(self.data_dir, files, workload.start_ns)
        except errors.ScenarioError as error:
            self.report.problems.extend(error.problems)
            return
        if files.digest not in (None, read.trace.digest):
            self.report.add(
                (*path, "digest"), f"the files in {self.data_dir} are others: their digest is {read.trace.digest}"
            )
        kubelet = {} if files.kubelet is None else paths.get(self.report.document.data, (*path, "kubelet"))
        for name, template in read.nodes:
            self.trace_nodes.append(clusters.named(template, name, kubelet))
        self.trace_priority_classes |= openb.PRIORITY_CLASSES
        self.trace_digests[index] = read.trace.digest
        self.workloads.append(dataclasses.replace(workload, trace=read.trace))
