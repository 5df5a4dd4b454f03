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
from kemu.emulated.objects import custom_kinds, resources
from kemu.emulated.objects.conversion import user_files
from kemu.emulated.settings import paths
from kemu.emulated.settings.declared import chosen, plain
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import Report
from kemu.emulated.settings.values import duration_text
from kemu.lab.scenario.arrivals import expected_arrivals
from kemu.lab.scenario.format.clusters import Node
from kemu.lab.scenario.format.events import Event
from kemu.lab.scenario.format.traces import CSV, OPENB, TraceFiles
from kemu.lab.scenario.format.workloads import Arrivals, Workload
from kemu.lab.scenario.loading import clusters, loads, references
from kemu.lab.scenario.loading.objects import job_formats, job_tables, job_traces, manifest_files, manifests, openb
from kemu.lab.scenario.loading.objects.manifests import Declared
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.resource_v1_pb2 import ResourceClaimTemplate
from kemu.runtime.random_streams import random_stream
from kemu.runtime.words import did_you_mean

MAX_ARRIVALS = job_traces.MAX_PODS
"""Most arrivals of one workload: what a single run can still hold and tell about."""


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
        seed: int = 0,
        beside: FilePath = FilePath(),  # it cannot be changed
    ) -> None:
        """``resolved``: the spec as the run folder has it; what stands in files is put into it. ``beside``: the folder
        of the scenario, where tables of jobs may be."""
        self.seed = seed
        self.beside = beside
        self.files = files
        self.resolved = resolved
        self.stated: list[tuple[str, str, str]] = []
        """Objects that files or Lists of events hold: kind, namespace and name."""
        self.report = report
        self.duration_ns = duration_ns
        self.data_dir = data_dir
        self.events: list[Event] = []
        self.workloads: list[Workload] = []
        self.declared: list[Declared] = []
        self.trace_nodes: list[Node] = []
        self.trace_priority_classes: dict[str, int] = {}
        self.trace_claims: dict[str, ResourceClaimTemplate] = {}
        """What pods of traces claim, by name."""
        self.traces = False
        """Whether there is a trace that brings nodes of its own."""
        self.trace_digests: dict[int, str] = {}
        """By index of the workload."""
        self.trace_namespaces: dict[str, None] = {}
        self.trace_classes: list[tuple[str, str, int, int]] = []
        """Priority classes that a trace names: name, file, line and column."""
        self._loads: dict[int, Path] = {}
        """Where workloads stand whose rate follows from the nodes, by index among those that were built."""

    def _in_time(self, when_ns: int | None, path: Path) -> None:
        check_in_time(self.report, self.duration_ns, when_ns, path)

    # --- events ------------------------------------------------------------------------------------------------------

    def add_events(self, checked: Sequence[Any], raw: Sequence[Any], path: Path) -> None:
        for index, event in enumerate(checked):
            if isinstance(event, Event) and event.what:
                self._add_event(index, event, raw[index], (*path, index))
        self.events.sort(key=lambda event: event.at_ns)

    def _add_event(self, index: int, event: Event, raw: Mapping[str, Any], path: Path) -> None:
        self._in_time(event.at_ns, (*path, "at"))
        where = (*path, event.what)
        event = dataclasses.replace(event, index=index)
        if event.patch is not None and custom_kinds.is_custom(event.patch.kind or ""):
            pass  # only its definition says what its objects may hold
        elif event.patch is not None:
            key, patch = chosen(event.patch)
            manifests.check_patch(resources.BY_KIND[event.patch.kind], patch or {}, (*where, key), self.report)
        elif event.resize is not None:
            manifests.check_patch(resources.BY_KIND["Pod"], {"spec": event.resize.spec}, where, self.report)
        elif event.add_node is not None:
            nodes = clusters.nodes(event.add_node, raw["addNode"], where, self.report)
            event = dataclasses.replace(event, nodes=tuple(nodes))
        elif event.what in ("create", "apply"):
            objects = self._objects(index, event.what, chosen(event)[1], where)
            event = dataclasses.replace(event, objects=objects)
            if not event.objects:
                return
        self.events.append(event)

    def _objects(self, index: int, what: str, detail: Mapping[str, Any], where: Path) -> tuple[Message, ...]:
        """Objects of one event: an object, those of a List, or those of a file."""
        found = []
        sources = self.files.sources(detail, where, self.report)
        for data, path, report in sources:
            stated = manifests.stated_name(data)
            if stated is not None:
                self.stated.append(stated)
            message = manifests.read(data, path, report, self.files.acting)
            if isinstance(message, core_v1_pb2.Node) and what == "create":
                report.add((*path, "kind"), "a Node that an event creates has no kubelet", "use addNode", key=True)
            if message is not None:
                found.append(message)
                self.declared.append(Declared(message, report, path))
        if set(detail) == {"file"}:
            items = {"apiVersion": "v1", "kind": "List", "items": [data for data, _, _ in sources]}
            self.resolved["events"][index][what] = items
        return tuple(found)

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
        poisson = arrivals.poisson
        has_load = poisson is not None and poisson.load is not None
        if poisson is not None and not has_load and poisson.rate_per_s is None:
            return  # its mistakes have been reported
        if not has_load:
            self._check_number(arrivals, where)
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
        if has_load:
            self._loads[len(self.workloads)] = where
        self.workloads.append(dataclasses.replace(workload, template=template, arrivals=arrivals))

    def _check_number(self, arrivals: Arrivals, where: Path) -> None:
        expected = expected_arrivals(arrivals)
        if expected > MAX_ARRIVALS:
            text = f"would bring about {expected:.3g} pods; at most {MAX_ARRIVALS} can come"
            self.report.add((*where, "arrivals"), text, "bound them with until or count, or let them come less often")

    def settle_loads(self, nodes: Sequence[Node]) -> None:
        """Turns loads into rates, once the nodes are known."""
        for index, where in self._loads.items():
            workload = self.workloads[index]
            arrivals = loads.settled(workload, nodes, where, self.report)
            if arrivals is not None:
                self.workloads[index] = dataclasses.replace(workload, arrivals=arrivals)
                self._check_number(arrivals, where)

    def _add_trace(self, index: int, workload: Workload, files: TraceFiles, where: Path) -> None:
        path = (*where, "trace")
        if files.format != OPENB:
            self._add_jobs(index, workload, files, where)
            return
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
            group = read.devices.get(name)
            its_devices = () if group is None else (plain(group),)
            self.trace_nodes.append(clusters.named(template, name, kubelet, its_devices=its_devices))
        self.trace_claims |= {one.metadata.name: one for one in read.claims}
        self.trace_priority_classes |= openb.PRIORITY_CLASSES
        self.trace_digests[index] = read.trace.digest
        self.workloads.append(dataclasses.replace(workload, trace=read.trace))

    def _add_jobs(self, index: int, workload: Workload, files: TraceFiles, where: Path) -> None:
        path = (*where, "trace")
        if any(one.path.startswith(f"spec.workloads[{index}].trace") for one in self.report.problems):
            return
        file = self._file_of(files, path)
        template = self._base(files, path)
        if file is None or template is None:
            return
        self.declared.append(Declared(template, self.report, (*path, "template"), template=True))
        jobs = job_traces.Jobs(template, workload.name)
        classes: Mapping[str, tuple[int, int]] = {}
        try:
            digest = job_tables.digest(file)
            if files.format == CSV:
                if files.columns is None:
                    return
                classes = job_tables.read(file, files.columns, jobs)
            else:
                job_formats.read(files.format, file, jobs)
        except user_files.FileProblem as error:
            self.report.add((*path, "file"), f"{file} {error}")
            return
        except errors.ScenarioError as error:
            self.report.problems.extend(error.problems)
            return
        if files.digest not in (None, digest):
            self.report.add((*path, "digest"), f"{file} is another file: its digest is {digest}")
        origin_ns = jobs.first_ns if job_formats.has_dates(files) else 0
        stream = random_stream(self.seed, "workload", workload.name, "sample")
        try:
            trace, made = jobs.trace(files, workload.start_ns, origin_ns, stream, digest)
        except job_traces.TooMany:
            text = f"has more than {MAX_ARRIVALS} pods"
            self.report.add((*path, "file"), text, "take fewer by limit, sample, from or until")
            return
        self.trace_priority_classes |= made
        self.trace_digests[index] = digest
        self.trace_namespaces |= trace.namespaces
        self.trace_classes += [(name, str(file), *place) for name, place in classes.items() if name not in made]
        # What runs the resolved document from elsewhere, as a replay does, finds it again.
        self.resolved["workloads"][index]["trace"]["file"] = str(file.resolve())
        self.workloads.append(dataclasses.replace(workload, trace=trace, template=template))

    def _file_of(self, files: TraceFiles, path: Path) -> FilePath | None:
        """In the folder of the data, or beside the scenario."""
        if files.file is None:
            return None
        folders = [self.beside] if self.data_dir is None else [self.data_dir, self.beside]
        for folder in folders:
            if (folder / files.file).exists():
                return folder / files.file
        where = " nor ".join(str(folder) for folder in dict.fromkeys(folders))
        hint = "" if self.data_dir is not None else "give the folder that holds it with --data DIR"
        self.report.add((*path, "file"), f"there is no {files.file} in {where}", hint)
        return None

    def _base(self, files: TraceFiles, path: Path) -> core_v1_pb2.Pod | None:
        """What all pods of a trace have."""
        stated = files.template or {}
        spec = stated.get("spec", {})
        if isinstance(spec, dict) and "containers" not in spec:
            stated = {**stated, "spec": {**spec, "containers": [{"name": "main"}]}}
        return manifests.read_pod(stated, (*path, "template"), self.report)

    def check_classes(self, names: references.Names) -> None:
        """Priority classes that traces name exist."""
        for name, file, line, column in self.trace_classes:
            if not names.has_priority_class(name):
                hint = did_you_mean(name, names.priority_classes)
                text = f"no PriorityClass with name {name} was found"
                self.report.problems.append(errors.Problem(file, line, column, "priority", text, hint))
