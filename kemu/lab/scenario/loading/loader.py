"""From a YAML file to a :class:`kemu.lab.scenario.scenarios.Scenario`, or to all of its mistakes at once.

    scenario = load("scenarios/races/two-schedulers-one-node.yaml", overrides={"seed": 7})
    for variant, each in variants(scenario): …

The steps: read (:mod:`documents`), put values from outside into it (:mod:`overriding`), check the keys
(:mod:`schema`), build the parts (:mod:`clusters`, :mod:`timelines`, :mod:`expectations`), check what they say about
each other (:mod:`references`), and the same again for every variant of the matrix (:mod:`matrices`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from google.protobuf.message import Message

from kemu import errors
from kemu.emulated import variants as deviations
from kemu.emulated.client.volume_drivers import Storage
from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.objects.plain import Json
from kemu.emulated.settings import documents, values
from kemu.emulated.settings.declared import plain
from kemu.emulated.settings.documents import Document, Path
from kemu.emulated.settings.shapes import INVALID, Report
from kemu.lab.checks.history.windows import Window
from kemu.lab.checks.limits import Checks
from kemu.lab.scenario import expectations, scenarios
from kemu.lab.scenario.format import schema
from kemu.lab.scenario.format.clusters import Node, Nodes, Scheduler
from kemu.lab.scenario.format.events import Event
from kemu.lab.scenario.format.keys import controller_keys, timing_keys
from kemu.lab.scenario.loading import (
    clusters,
    controllers,
    faults,
    holds,
    lints,
    matrices,
    mistakes,
    node_groups,
    overriding,
    references,
    scaling,
    timelines,
    users,
)
from kemu.lab.scenario.loading.objects import (
    admission_hooks,
    devices,
    foreign_files,
    manifest_files,
    manifests,
    volumes,
)
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.resource_v1_pb2 import ResourceSlice
from kemu.runtime import user_code, words

Variant = matrices.Variant
"""Path below spec → value."""

_ZONE = "topology.kubernetes.io/zone"
MAX_VARIANTS = 1000

_OF_INFORMERS = {"watchList": (), "listWatch": ("k8s-59848",)}
"""How informers begin, as variants of clients."""


def load(
    path: str | FilePath,
    data_dir: str | FilePath | None = None,
    overrides: Mapping[str, Any] | None = None,
    more_manifests: Sequence[str | FilePath] = (),
) -> scenarios.Scenario:
    """Read a scenario.

    ``data_dir`` is where traces are found. ``overrides`` are values for paths below spec, such as ``seed`` or
    ``schedulers[0].policy.queue``; a path of the matrix is pinned by it. ``more_manifests``: files or folders whose
    objects are created after its own manifests. Raises ScenarioError with every mistake, in the order of the file.
    """
    file = FilePath(path)
    document = only(documents.read(file), str(file))
    _add_manifests(document, more_manifests)
    return _load(document, file, None if data_dir is None else FilePath(data_dir), overrides or {})


def _add_manifests(document: Document, files: Sequence[str | FilePath]) -> None:
    spec = document.data.get("spec") if isinstance(document.data, dict) else None
    if not isinstance(spec, dict) or not files:
        return
    stated = spec.setdefault("manifests", [])
    for file in files if isinstance(stated, list) else ():
        path: Path = ("spec", "manifests", len(stated))
        document.overridden[path] = f"--manifests {file}"
        stated.append({"file": str(FilePath(file).resolve())})


def loads(
    text: str,
    name: str = "scenario.yaml",
    data_dir: str | FilePath | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    any_pod: bool = False,
) -> scenarios.Scenario:
    """The same from a text; files that it names are looked for in the current directory.

    ``any_pod``: it may speak of pods that nothing in it creates, as those that a program will.
    """
    found = documents.parse(text, name)
    folder = None if data_dir is None else FilePath(data_dir)
    return _load(only(found, name), FilePath(name), folder, overrides or {}, any_pod=any_pod)


def of_document(
    document: Document, data_dir: str | FilePath | None = None, overrides: Mapping[str, Any] | None = None
) -> scenarios.Scenario:
    """The same from a document that was read, which is changed; files that it names are looked for beside its own."""
    folder = None if data_dir is None else FilePath(data_dir)
    return _load(document, FilePath(document.file), folder, overrides or {})


def only(found: Sequence[Document], name: str) -> Document:
    """The one document of a scenario. Raises ScenarioError for anything else, and says what it is."""
    complaint = foreign_files.complaint(found)
    if not found:
        complaint = errors.Problem(name, 1, 1, "", "holds no document")
    if complaint is not None:
        raise errors.ScenarioError([complaint])
    return found[0]


def of_data(data: Json, name: str = "scenario.yaml", data_dir: str | FilePath | None = None) -> scenarios.Scenario:
    """The same from plain data, as a scenario's ``resolved`` has it. The data is not changed, nor kept."""
    return of_document(Document(name, documents.copy(data)), data_dir)


def variants(scenario: scenarios.Scenario) -> list[tuple[Variant, scenarios.Scenario]]:
    """Every combination of the matrix, the last path changing fastest; without one, the scenario itself."""
    return list(scenario.variants) or [({}, scenario)]


def select(scenario: scenarios.Scenario, condition: Mapping[str, Any]) -> list[int]:
    """Which of :func:`variants` have these values at these paths, or of these parameters."""
    return [
        index
        for index, (chosen, variant) in enumerate(variants(scenario))
        if matrices.matches(variant.document.data, condition, chosen)
    ]


def _load(
    document: Document, file: FilePath, data_dir: FilePath | None, overrides: Variant, *, any_pod: bool = False
) -> scenarios.Scenario:
    pinned = overriding.apply(document, overrides)
    problems: list[errors.Problem] = []
    loading = _Loading(document, file, data_dir, problems, pinned, any_pod=any_pod)
    matrix = matrices.read(document, loading.report)
    scenario = loading.build(matrix)
    set_by = {text: each.name for each in matrix for _, values in each.choices for text in values}
    made: list[tuple[Variant, scenarios.Scenario]] = []
    if scenario is not None:
        for combination in matrices.combinations(matrix):
            clone = matrices.clone(document)
            del clone.data["spec"]["matrix"]
            try:
                for text, value in combination.values.items():
                    place = document.place(matrices.place_of(set_by[text], document))
                    matrices.put_all(clone, text, value, place)
            except ValueError as error:  # another path of the matrix has taken the ground away
                loading.report.add(("spec", "matrix"), str(error), key=True)
                continue
            chosen = {**pinned, **combination.variant}
            variant = _Loading(clone, file, data_dir, problems, chosen, is_variant=True, any_pod=any_pod).build([])
            if variant is not None:
                made.append((combination.variant, variant))
        _check_conditions(scenario, made or [({}, scenario)], pinned, loading.report)
    if problems or scenario is None:
        raise errors.ScenarioError(mistakes.in_order(problems, document.file))
    scenario.variants.extend(made)
    linted = [document, *(variant.document for _, variant in made), *loading.files.documents]
    warnings = [warning for each in linted for warning in lints.warnings(each)]
    found = mistakes.in_order([*loading.files.notes(), *warnings], document.file)
    scenario = dataclasses.replace(scenario, warnings=tuple(found))
    return _without_lost_comparisons(scenario) if pinned else scenario


def _without_lost_comparisons(scenario: scenarios.Scenario) -> scenarios.Scenario:
    """Those whose variants an override took away can no longer be judged."""
    kept = []
    for expectation in scenario.comparisons:
        subject = expectation.subject
        assert isinstance(subject, expectations.Comparison)
        if scenario.variants and all(len(select(scenario, each)) == 1 for each in (subject.of, subject.times_that_of)):
            kept.append(expectation)
    return dataclasses.replace(scenario, comparisons=tuple(kept))


def _is_node(source: manifest_files.Source) -> bool:
    data = source[0]
    return isinstance(data, dict) and (data.get("apiVersion"), data.get("kind")) == ("v1", "Node")


def _names_module(value: Json) -> bool:
    """Whether a text in it is ``module:Class``."""
    if isinstance(value, Mapping):
        return any(_names_module(each) for each in value.values())
    if isinstance(value, list):
        return any(_names_module(each) for each in value)
    return isinstance(value, str) and user_code.NAME.fullmatch(value) is not None


def _check_conditions(
    scenario: scenarios.Scenario,
    made: Sequence[tuple[Variant, scenarios.Scenario]],
    pinned: Variant,
    report: Report,
) -> None:
    """``when`` speaks of a variant at least, ``of`` and ``timesThatOf`` of one exactly.

    With something ``pinned``, ``when`` may speak of variants that an override took away.
    """

    def count(condition: Mapping[str, Any]) -> int:
        return sum(matrices.matches(variant.document.data, condition, {**pinned, **chosen}) for chosen, variant in made)

    items = report.document.data["spec"].get("expect")
    for index, item in enumerate(items if isinstance(items, list) else []):
        if not isinstance(item, dict):
            continue
        path: Path = ("spec", "expect", index)
        when = item.get("when")
        if isinstance(when, dict) and not pinned and not count(when):
            report.add((*path, "when"), "no variant of the matrix is like that")
        compare = item.get("compare")
        if not isinstance(compare, dict):
            continue
        if pinned:
            continue
        if len(made) < 2:
            report.add((*path, "compare"), "compares variants, but there is no matrix", key=True)
            continue
        for key in ("of", "timesThatOf"):
            if isinstance(compare.get(key), dict) and count(compare[key]) != 1:
                text = f"fits {count(compare[key])} variants of the matrix; it must fit exactly one"
                report.add((*path, "compare", key), text)


class _Loading:
    """One document, or one variant of it."""

    def __init__(
        self,
        document: Document,
        file: FilePath,
        data_dir: FilePath | None,
        problems: list[errors.Problem],
        chosen: Variant,
        *,
        is_variant: bool = False,
        any_pod: bool = False,
    ) -> None:
        """``chosen``: what makes it a variant of its scenario, by path or parameter."""
        self.document = document
        self.file = file
        self.data_dir = data_dir
        self.report = Report(document, problems)
        self.chosen = chosen
        self.is_variant = is_variant
        self.any_pod = any_pod
        self.resolved = documents.copy(document.data)
        self.files = manifest_files.ManifestFiles(
            file.parent,
            *(_stated(document.data, key) for key in ("unsimulated", "controllers", "apiServers", "schedulers")),
        )
        """What stands in files that the scenario names."""
        self._node_names: list[tuple[str, Path]] = []
        self._stated: list[tuple[str, str, str]] = []
        self._objects: list[manifests.Declared] = []
        """The Nodes among the manifests."""
        self._slices: dict[int, Message | None] = {}
        """What was read of ResourceSlices among the manifests, by the identity of their data. None: a driver on a node
        publishes it, or nothing could be read."""

    def build(self, matrix: Sequence[matrices.Dimension]) -> scenarios.Scenario | None:
        """The scenario, with whatever of it is right; None where nothing can be built."""
        report = self.report
        checked = schema.SCENARIO.check(self.document.data, (), report)
        if checked is INVALID or not isinstance(self.document.data.get("spec"), dict):
            return None
        spec: schema.Spec = checked["spec"]
        raw = self.document.data["spec"]
        spec = scaling.scaled(self._with_times(spec, raw.get("timing")), report)
        # Where the duration itself is wrong, nothing is too late.
        is_wrong = any(problem.path == "spec.duration" for problem in report.problems)
        last_ns = values.MAX_DURATION_NS if is_wrong else spec.duration_ns

        timeline = timelines.Timeline(
            report, last_ns, self.data_dir, self.files, self.resolved["spec"], spec.seed, self.file.parent
        )
        timeline.add_workloads(spec.workloads, ("spec", "workloads"))
        timeline.add_events(spec.events, raw.get("events") or [], ("spec", "events"))
        sources = self._sources(spec)
        nodes = self._nodes(spec, raw, timeline, sources)
        self._check_unsimulated(spec)
        autoscaler = node_groups.read(spec.autoscaler, raw.get("autoscaler"), ("spec", "autoscaler"), report)
        if autoscaler is not None:
            nodes += autoscaler.nodes
        timeline.settle_loads(nodes)
        self._find_modules(spec)
        schedulers = clusters.schedulers(spec.schedulers, self._scheduler_configs(spec), ("spec", "schedulers"), report)
        extenders = clusters.extenders(spec.extenders, schedulers, ("spec", "extenders"), self.report)
        setup, declared = self._setup(spec, timeline, sources)
        has_volumes = spec.storage is not None or volumes.are_used(setup, timeline.events, timeline.workloads)
        of_groups = () if autoscaler is None else [group.template for group in autoscaler.settings.groups]
        has_devices = devices.are_used([*nodes, *of_groups], setup, timeline.events, timeline.workloads)
        has_devices = has_devices or controller_keys.RESOURCE_CLAIM in (spec.controllers or ())
        if has_devices:
            classes = devices.default_classes([*nodes, *of_groups], setup)
            setup += [_manifest(one, ("spec", "nodes"), self.report) for one in classes]
        running = controllers.chosen(
            spec.controllers,
            nodes,
            setup,
            timeline.events,
            timeline.workloads,
            bool(spec.chaos) or autoscaler is not None,
            has_volumes=has_volumes,
            has_devices=has_devices,
        )
        has_autoscaler = raw.get("autoscaler") is not None
        has_descheduler = raw.get("descheduler") is not None
        for name, section in ((controller_keys.DESCHEDULER, spec.descheduler), (controller_keys.KUEUE, spec.queues)):
            if section is not None:
                running.setdefault(name, controller_keys.default(name))
        controllers.check(
            spec.controllers,
            running,
            self.report,
            has_autoscaler=has_autoscaler,
            has_descheduler=has_descheduler,
            has_queues=raw.get("queues") is not None,
        )
        found_users = users.by_name(spec.users, self.report)
        users.check_actors(timeline.events, found_users, self.report)
        names = references.Names(
            nodes,
            schedulers,
            extenders,
            timeline.workloads,
            timeline.events,
            apiservers=spec.api_servers.replicas,
            controllers=running,
            node_groups=() if autoscaler is None else autoscaler.settings.groups,
            priority_classes=[*spec.priority_classes, *timeline.trace_priority_classes],
            more_namespaces=timeline.trace_namespaces,
            raw_workloads=_names(raw.get("workloads")),
            stated=[*self._stated, *timeline.stated, *_created(raw.get("events"))],
            any_pod=self.any_pod,
            excuses=mistakes.Excuses(report.problems, self.document.file, raw),
        )
        zones = _zones(nodes, timeline.events)
        runtime, cells = spec.runtime
        chaos = faults.FaultReader(report, last_ns, names, zones, cells).read_all(
            spec.chaos, raw.get("chaos"), ("spec", "chaos")
        )
        kept_back = holds.read(spec.holds, report, names.actors, ("spec", "holds"))
        self._check_names(raw, declared, names, timeline)
        admission_hooks.check(spec.api_servers, declared, report)
        admission_hooks.check_conversions(spec.api_servers, declared, report)
        timeline.check_classes(names)
        expected, comparisons = self._expectations(spec, raw, names, last_ns, judged=not matrix)
        until = self._until(spec, raw, names, last_ns)
        self._observe(spec.observed)
        metadata = checked.get("metadata", {})
        informers = spec.informers
        if isinstance(informers, str):
            informers = schema.Informers(begin=informers)
        return scenarios.Scenario(
            name=metadata.get("name") or self.file.stem,
            description=metadata.get("description", ""),
            file=str(self.file),
            document=self.document,
            resolved=self.resolved,
            seed=spec.seed,
            duration_ns=spec.duration_ns,
            runtime=runtime,
            cells=cells,
            speed=spec.speed,
            nodes=tuple(nodes),
            schedulers=tuple(schedulers),
            extenders=tuple(extenders),
            autoscaler=None if autoscaler is None else autoscaler.settings,
            descheduler=spec.descheduler,
            queues=spec.queues,
            api_servers=spec.api_servers,
            users=found_users,
            event_objects=spec.event_objects,
            pod_statuses=spec.pod_statuses,
            metrics=spec.metrics,
            heartbeats=spec.heartbeats,
            store=spec.store,
            images=clusters.image_sizes(spec.images, self._stated_nodes(), ("spec", "images"), report),
            timing=spec.timing,
            storage=(spec.storage or Storage()) if has_volumes else None,
            devices=has_devices,
            references=spec.references,
            setup=tuple(setup),
            events=tuple(timeline.events),
            workloads=tuple(timeline.workloads),
            lives=tuple(each for each in spec.lives if each is not INVALID),
            programs=spec.programs is True,
            controllers=running,
            bugs=tuple(bug for bug in (*spec.bugs, *spec.fixes, *_OF_INFORMERS[informers.begin]) if bug is not INVALID),
            streams=informers.streams,
            chaos=chaos,
            holds=kept_back,
            ablate=self._ablated(spec),
            checks=self._checks(spec.checks),
            measure=self._window(spec.measure, last_ns),
            until=until,
            expectations=tuple(expected),
            comparisons=tuple(comparisons),
            matrix={each.name: tuple(shown for shown, _ in each.choices) for each in matrix},
        )

    def _observe(self, stated: object) -> None:
        """Take the lines of ``observed`` from their file into the resolved document."""
        if not isinstance(stated, dict):
            return
        for document in self.files.read(stated["file"], ("spec", "observed", "file"), self.report):
            schema.OBSERVED.check(document.data, (), Report(document, self.report.problems))
            self.resolved["spec"]["observed"] = document.data

    # --- the cluster -------------------------------------------------------------------------------------------------

    def _sources(self, spec: schema.Spec) -> list[manifest_files.Source]:
        """The objects of ``manifests``, in their order."""
        found: list[manifest_files.Source] = []
        for index, item in enumerate(spec.manifests):
            if item is not INVALID:
                found += self.files.sources(item, ("spec", "manifests", index), self.report)
        found = self.files.with_owners(found)
        if spec.manifests:
            self.resolved["spec"]["manifests"] = [data for data, _, _ in found]
        return found

    def _nodes(
        self,
        spec: schema.Spec,
        raw: Mapping[str, Any],
        timeline: timelines.Timeline,
        sources: Sequence[manifest_files.Source],
    ) -> list[Node]:
        """Those of ``nodes``, of traces, and the Nodes among the manifests."""
        nodes: list[Node] = []
        strange = [key for key in raw if key not in schema.SPEC.record.keys]
        objects = [source for source in sources if _is_node(source)]
        has_others = objects or timeline.traces or ("nodes" not in raw and raw.get("autoscaler") is not None)
        if raw.get("nodes") is None and not has_others and not words.nearest_word("nodes", strange):
            manifests_unread = any(problem.path.startswith("spec.manifests") for problem in self.report.problems)
            if not manifests_unread:
                self.report.add(("spec",), "nodes is missing")
        for index, item in enumerate(spec.nodes):
            if item is not INVALID:
                path: Path = ("spec", "nodes", index)
                written = raw["nodes"][index]
                if item.kubelet_file is not None:
                    found = self._kubelet_file(item, path)
                    if found is None:
                        continue
                    item, written = found[0], {**written, "kubelet": found[1]}
                made = clusters.nodes(item, written, path, self.report, clusters.MAX_NODES - len(nodes))
                nodes += made
                key = "namePrefix" if item.name is None else "name"
                self._node_names += [(node.name, (*path, key)) for node in made]
        for data, where, report in objects:
            message = self._read(data, where, report)
            if isinstance(message, core_v1_pb2.Node):
                nodes.append(clusters.node_of(message, data, where, report))
                self._objects.append(manifests.Declared(message, report, where))
        return self._with_drivers(nodes + timeline.trace_nodes, sources)

    def _with_drivers(self, nodes: list[Node], sources: Sequence[manifest_files.Source]) -> list[Node]:
        """The nodes with the drivers whose slices stand among the manifests."""
        known = {node.name for node in nodes}
        slices: list[ResourceSlice] = []
        for data, where, report in sources:
            if devices.is_slice(data):
                self._slices[id(data)] = read = self._read(data, where, report)
                if isinstance(read, ResourceSlice):
                    slices.append(read)
                    if read.spec.nodeName in known:
                        self._slices[id(data)] = None
        return devices.drivers_of(slices, nodes) if slices else nodes

    def _stated_nodes(self) -> Iterator[core_v1_pb2.Node]:
        return (each.message for each in self._objects if isinstance(each.message, core_v1_pb2.Node))

    def _read(self, data: Any, where: Path, report: Report) -> Message | None:
        return manifests.read(data, where, report, self.files.acting)

    def _kubelet_file(self, item: Nodes, path: Path) -> tuple[Nodes, Mapping[str, Any]] | None:
        """The nodes with what stands in their ``kubeletFile``, and that as written, which the resolved document gets;
        None: mistakes."""
        where = (*path, "kubeletFile")
        if item.kubelet is not None:
            self.report.add(where, "cannot stand beside kubelet", key=True)
            return None
        document = self._mapping(str(item.kubelet_file), where, "KubeletConfiguration")
        if document is None:
            return None
        data, problems = document.data, len(self.report.problems)
        report = Report(document, self.report.problems)
        item = dataclasses.replace(item, kubelet=kubelet_configurations.SHAPE.check(data, (), report))
        if len(self.report.problems) > problems:
            return None
        resolved = self.resolved["spec"]["nodes"][path[-1]]
        del resolved["kubeletFile"]
        resolved["kubelet"] = data
        return item, data

    def _with_times(self, spec: schema.Spec, stated: object) -> schema.Spec:
        """With the times of the preset's file, if it is one, below those that the scenario states; the resolved
        document gets them."""
        path: Path = ("spec", "timing")
        name = stated
        if isinstance(stated, dict):
            path, name = (*path, timing_keys.PRESET), stated.get(timing_keys.PRESET)
        if not timing_keys.is_file(name) or spec.timing is INVALID:
            return spec
        # A name on the command line is one of the current directory.
        file = FilePath(str(name))
        beside = (self.file.parent / file).exists() or not file.exists()
        document = self._mapping(str(file if beside else file.absolute()), path, timing_keys.KIND)
        if document is None:
            return spec
        timing = timing_keys.of_file(document.data, Report(document, self.report.problems))
        if timing is INVALID:
            return spec
        own = dict(stated) if isinstance(stated, dict) else {}
        own.pop(timing_keys.PRESET, None)
        written = document.data["timing"]
        below = {timing_keys.PRESET: written} if isinstance(written, str) else written
        self.resolved["spec"]["timing"] = {**below, **own}
        return dataclasses.replace(spec, timing={**timing, **spec.timing})

    def _scheduler_configs(self, spec: schema.Spec) -> dict[int, Any]:
        """What stands in ``configFile`` of each scheduler that has one; taken into the resolved document."""
        configs = {}
        for index, item in enumerate(spec.schedulers or ()):
            if not isinstance(item, Scheduler):
                continue
            path: Path = ("spec", "schedulers", index, "config")
            if item.config or item.config_file is None:
                if item.factory is None:
                    clusters.check_config(item, item.config, path, self.report)
                continue
            path = (*path[:-1], "configFile")
            document = self._mapping(item.config_file, path, "KubeSchedulerConfiguration")
            if document is not None:
                configs[index] = document.data
                if item.factory is None:
                    clusters.check_config(item, document.data, (), Report(document, self.report.problems))
                resolved = self.resolved["spec"]["schedulers"][index]
                del resolved["configFile"]
                resolved["config"] = document.data
        return configs

    def _mapping(self, name: str, path: Path, kind: str) -> Document | None:
        """The one document of a file that stands at the path; None: there is a mistake."""
        found = self.files.read(name, path, self.report)
        if len(found) == 1 and isinstance(found[0].data, dict):
            return found[0]
        if found:
            self.report.add(path, f"must hold one mapping, a {kind}")
        return None

    def _check_unsimulated(self, spec: schema.Spec) -> None:
        """Only what kemu does not simulate can be left out."""
        kinds = spec.unsimulated
        for kind in manifest_files.left_out(kinds) if isinstance(kinds, list) else ():
            path: Path = ("spec", "unsimulated", kinds.index(kind))  # type: ignore[union-attr]
            self.report.add(path, f"{kind} is simulated", "leave the objects themselves out")

    def _find_modules(self, spec: schema.Spec) -> None:
        """The user's own Python modules lie beside the scenario or in its folders of modules, or on Python's path."""
        if not _names_module(plain([spec.schedulers or [], spec.extenders, spec.api_servers])):
            return
        beside = self.file.parent
        stated = [FilePath(folder) for folder in spec.modules if folder is not INVALID]
        folders = [beside / folder for folder in stated]
        if not stated or not all(folder.is_absolute() for folder in stated):
            folders.append(beside)  # else it is a resolved document, which has them all
        for folder in folders:
            user_code.look_in(folder)
        # What runs the resolved document from elsewhere, as a replay does, needs them too.
        self.resolved["spec"]["modules"] = list(dict.fromkeys(str(folder.resolve()) for folder in folders))

    def _setup(
        self, spec: schema.Spec, timeline: timelines.Timeline, sources: Sequence[manifest_files.Source]
    ) -> tuple[list[scenarios.Manifest], list[manifests.Declared]]:
        """What is created before the clock starts: priority classes first, then the manifests in their order."""
        classes: list[scenarios.Manifest] = []
        for name, item in spec.priority_classes.items():
            path: Path = ("spec", "priorityClasses", name)
            value = item if isinstance(item, int) else item.get("value", 0)
            if not -(1 << 31) <= value < 1 << 31:
                where = path if isinstance(item, int) else (*path, "value")
                self.report.add(where, f"{value} is not a priority: the highest that a user may define is 1000000000")
                continue
            message = clusters.priority_class(name, item)
            manifests.complete(message, item if isinstance(item, dict) else {}, path, self.report)
            classes.append(_manifest(message, path, self.report))
        classes += [
            _manifest(clusters.priority_class(name, value), ("spec", "workloads"), self.report)
            for name, value in timeline.trace_priority_classes.items()
            if name not in spec.priority_classes
        ]
        setup = [_manifest(one, ("spec", "workloads"), self.report) for one in timeline.trace_claims.values()]
        declared = [*self._objects]
        for data, where, report in sources:
            stated = manifests.stated_name(data)
            if stated is not None:
                self._stated.append(stated)
            if id(data) in self._slices:
                read = self._slices[id(data)]
            else:
                read = None if _is_node((data, where, report)) else self._read(data, where, report)
            if read is not None:
                setup.append(_manifest(read, where, report))
                declared.append(manifests.Declared(read, report, where))
        for index, digest in timeline.trace_digests.items():
            self.resolved["spec"]["workloads"][index]["trace"]["digest"] = digest
        namespaces = [item for item in setup if isinstance(item.message, core_v1_pb2.Namespace)]
        there = {name for kind, _, name in self._stated if kind == "Namespace"}
        for name in timeline.trace_namespaces:
            if name not in there and name not in clusters.NAMESPACES:
                made = core_v1_pb2.Namespace()
                made.metadata.name = name
                namespaces.append(_manifest(made, ("spec", "workloads"), self.report))
        rest = [item for item in setup if not isinstance(item.message, core_v1_pb2.Namespace)]
        return [*namespaces, *classes, *rest], [*declared, *timeline.declared]

    def _check_names(
        self,
        raw: Mapping[str, Any],
        declared: Sequence[manifests.Declared],
        names: references.Names,
        timeline: timelines.Timeline,
    ) -> None:
        references.check_unique(self._node_names, "node", self.report)
        for section, what in (("schedulers", "scheduler"), ("extenders", "extender"), ("workloads", "workload")):
            items = raw.get(section)
            stated = [
                (item["name"], ("spec", section, index, "name"))
                for index, item in enumerate(items if isinstance(items, list) else [])
                if isinstance(item, dict) and isinstance(item.get("name"), str)
            ]
            references.check_unique(stated, what, self.report)
        references.check_objects(declared, names, [name for name, _ in self._node_names])
        references.check_events(timeline.events, names, self.report)

    def _checks(self, checks: Checks) -> Checks:
        """Without what is no check."""
        disabled = [check for check in checks.disable if check is not INVALID]
        for index, check in enumerate(disabled):
            references.check_id(check, ("spec", "checks", "disable", index), self.report)
        return dataclasses.replace(checks, disable=disabled)

    def _window(self, window: Window, last_ns: int) -> Window:
        if window is INVALID:
            return Window()
        for key, when_ns in (("from", window.from_ns), ("until", window.until_ns)):
            timelines.check_in_time(self.report, last_ns, when_ns, ("spec", "measure", key))
        return window

    def _ablated(self, spec: schema.Spec) -> tuple[str, ...]:
        for index, name in enumerate(spec.ablate):
            if name in deviations.OF_THE_STORE and spec.store.etcd:
                self.report.add(("spec", "ablate", index), f"{name} is a safeguard of kemu's own store, not of an etcd")
        return tuple(name for name in deviations.names(deviations.ABLATION) if name in spec.ablate)

    # --- expectations ------------------------------------------------------------------------------------------------

    def _expectations(
        self,
        spec: schema.Spec,
        raw: Mapping[str, Any],
        names: references.Names,
        duration_ns: int,
        *,
        judged: bool,
    ) -> tuple[list[expectations.Expectation], list[expectations.Expectation]]:
        """Those that count in this document, and the comparisons.

        Not ``judged``: the document has a matrix, and each variant has expectations of its own.
        """
        found, comparisons = [], []
        kept = []
        ids: dict[str, int] = {}
        for index, item in enumerate(spec.expect):
            if not isinstance(item, dict):
                continue
            path: Path = ("spec", "expect", index)
            written = raw["expect"][index]
            expectation = expectations.read(item, written, self.document.place(path).line)
            if expectation is None:
                continue
            is_comparison = isinstance(expectation.subject, expectations.Comparison)
            if is_comparison and not self.is_variant:
                references.check_expectation(expectation, path, names, duration_ns, self.report)
                comparisons.append(expectations.unique(expectation, ids))
            elif not is_comparison and judged and matrices.matches(self.document.data, expectation.when, self.chosen):
                references.check_expectation(expectation, path, names, duration_ns, self.report)
                found.append(expectations.unique(expectation, ids))
                kept.append({key: value for key, value in written.items() if key != "when"})
        if (self.is_variant or (self.chosen and judged)) and "expect" in raw:
            self.resolved["spec"]["expect"] = kept
        return found, comparisons

    def _until(
        self, spec: schema.Spec, raw: Mapping[str, Any], names: references.Names, duration_ns: int
    ) -> expectations.Expectation | None:
        if spec.until is None:
            return None
        path: Path = ("spec", "until")
        found = expectations.read(spec.until, raw["until"], self.document.place(path).line)
        if found is None:
            return None
        complaint = expectations.cannot_end_a_run(found)
        if complaint:
            self.report.add(path, complaint)
        references.check_expectation(found, path, names, duration_ns, self.report)
        return found


def _stated(data: Json, key: str) -> object:
    """What the scenario says below ``spec``, before anything is checked."""
    spec = data.get("spec") if isinstance(data, dict) else None
    return spec.get(key) if isinstance(spec, dict) else None


def _manifest(message: Message, path: Path, report: Report) -> scenarios.Manifest:
    problem = report.document.problem(path, "", root=report.root)
    return scenarios.Manifest(message, problem.file, problem.line, problem.column, problem.path)


def _names(items: object) -> list[str]:
    return [
        item["name"]
        for item in (items if isinstance(items, list) else [])
        if isinstance(item, dict) and isinstance(item.get("name"), str)
    ]


def _zones(nodes: Sequence[Node], events: Sequence[Event]) -> dict[str, list[str]]:
    """The kubelets of each zone, also of nodes that are added later."""
    zones: dict[str, list[str]] = {}
    for node in (*nodes, *(node for event in events for node in event.nodes)):
        zone = node.message.metadata.labels.get(_ZONE)
        if zone:
            zones.setdefault(zone, []).append(f"kubelet/{node.name}")
    return zones


def _created(items: object) -> Iterator[tuple[str, str, str]]:
    for item in items if isinstance(items, list) else []:
        for action in ("create", "apply"):
            stated = manifests.stated_name(item.get(action)) if isinstance(item, dict) else None
            if stated is not None:
                yield stated
