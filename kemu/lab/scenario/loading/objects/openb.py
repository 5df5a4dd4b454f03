"""The Alibaba openb trace (cluster-trace-gpu-v2023) as nodes and pods.

Two tables, :data:`NODE_COLUMNS` and :data:`POD_COLUMNS`; times are in seconds.

How it maps, and what is lost:

* A node offers ``nvidia.com/gpu`` (whole devices) and ``kemu.dev/gpu-milli`` (1000 for each), and carries its model as
  label ``nvidia.com/gpu.product``.
* A pod that wants whole devices requests both; one that shares a device requests its share in ``kemu.dev/gpu-milli``
  only, as extended resources are integers. So shares are counted by node, not by device: two halves of two devices
  look like one free device, which a real device plugin would not grant.
* With ``gpus: devices`` a node has devices of :data:`DRIVER` instead, each of which several claims may share, and a pod
  claims as many with its share of each: shares are counted by device. ``gpu_spec`` is then a selector of the claim.
* ``gpu_spec`` (``V100M16|V100M32``) becomes required node affinity on the model.
* The classes of service become a priority class and the relation of limits to requests: see :data:`SERVICES`.
  Best-effort pods keep their requests (the trace's scheduler reserved them), so that they are Burstable to Kubernetes.
* A pod runs as long as it did: from ``scheduled_time`` (where it has none, ``creation_time``) to ``deletion_time``. One
  whose phase is Failed ends with exit code 1.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kemu import errors
from kemu.emulated.kubelet.settings.devices import Devices
from kemu.emulated.objects import names
from kemu.emulated.objects.conversion import user_files
from kemu.emulated.objects.pods import gpu_cards
from kemu.lab.scenario.format.traces import DEVICES, Trace, TraceFiles
from kemu.lab.scenario.loading.objects import manifests
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2
from kemu.runtime.env import SECOND_NS

GPU = gpu_cards.GPU
GPU_MILLI = gpu_cards.GPU_MILLI
GPU_MODEL = "nvidia.com/gpu.product"
PODS_PER_NODE = 110
DRIVER, MILLI = "gpu.nvidia.com", "milli"
"""Of GPUs as devices; their capacity, 1000 of each."""

MAX_PROBLEMS = 20
"""After this many bad rows the rest of a file is not read."""

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase", "creation_time",
    "deletion_time", "scheduled_time",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Service:
    """What a class of service of the trace is in Kubernetes."""

    priority_class: str
    priority: int
    limits: int
    """Limits as a multiple of the requests; 0: none."""


SERVICES: Mapping[str, Service] = {
    "Guaranteed": Service("openb-guaranteed", 4000, 1),
    "LS": Service("openb-latency-sensitive", 3000, 1),
    "Burstable": Service("openb-burstable", 2000, 2),
    "BE": Service("openb-best-effort", 1000, 0),
}

PRIORITY_CLASSES = {service.priority_class: service.priority for service in SERVICES.values()}


@dataclass(frozen=True, slots=True)
class Read:
    """What the files say."""

    nodes: tuple[tuple[str, core_v1_pb2.Node], ...]
    """Name and template; nodes that are alike share one."""
    trace: Trace
    devices: Mapping[str, Devices] = field(default_factory=dict)
    """By node, where GPUs are devices."""
    claims: tuple[resource_v1_pb2.ResourceClaimTemplate, ...] = ()
    """Which the templates of pods name."""


def read(folder: Path, files: TraceFiles, start_ns: int = 0) -> Read:
    """Read a trace; its time 0 is ``start_ns``. Raises ScenarioError with the file and line of everything that is
    wrong."""
    problems: list[errors.Problem] = []
    digest = hashlib.sha256()
    as_devices = files.gpus == DEVICES
    found_nodes = _read_nodes(folder / files.nodes, problems, digest) if files.nodes is not None else []
    run_speed_up = files.run_speed_up or files.speed_up
    assert files.pods is not None
    trace = _read_pods(folder / files.pods, problems, digest, files.speed_up, run_speed_up, start_ns, files.limit)
    if problems:
        raise errors.ScenarioError(problems)
    if not as_devices:
        return Read(tuple(found_nodes), trace)
    devices = {name: found for name, node in found_nodes if (found := _devices(node)) is not None}
    for _, node in found_nodes:
        for amounts in (node.status.capacity, node.status.allocatable):
            for name in (GPU, GPU_MILLI):
                amounts.pop(name, None)
    claims = {one.metadata.name: one for one in (_claim(template) for template in trace.templates if _takes(template))}
    return Read(tuple(found_nodes), trace, devices, tuple(claims.values()))


class _Row:
    """One line of a table; complaints carry its number."""

    def __init__(self, file: Path, line: int, cells: dict[str, str], problems: list[errors.Problem]) -> None:
        self.file = file
        self.line = line
        self.cells = cells
        self.problems = problems
        self.good = True

    def problem(self, column: str, message: str) -> None:
        self.good = False
        self.problems.append(errors.Problem(str(self.file), self.line, 1, column, message))

    def whole(self, column: str) -> int:
        """A whole number that is not negative; 0, and a complaint, if it is not."""
        text = self.cells[column]
        if text.isdecimal() and len(text) <= _MOST_DIGITS:
            return int(text)
        if text.isdecimal():
            self.problem(column, f"is too large: it has {len(text)} digits, and {_MOST_DIGITS} are the most")
        else:
            self.problem(column, f"must be a whole number that is not negative, not {text[:100]!r}")
        return 0


_MAX_BYTES = 1 << 30
"""Most bytes of a table; those of openb have some MB."""
_MOST_DIGITS = 15
"""Ten thousand years in ns have more, but no column counts those."""


def _rows(
    file: Path, columns: tuple[str, ...], problems: list[errors.Problem], digest: hashlib._Hash
) -> Iterator[_Row]:
    try:
        data = user_files.read_bytes(file, _MAX_BYTES)
        text = data.decode("utf-8-sig")
    except user_files.FileProblem as error:
        problems.append(errors.Problem(str(file), 1, 1, "", str(error)))
        return
    except UnicodeDecodeError as error:
        problems.append(errors.Problem(str(file), 1, 1, "", f"is not UTF-8 text: {error}"))
        return
    digest.update(hashlib.sha256(data).digest())
    reader = csv.reader(text.splitlines())
    header = next(reader, [])
    missing = [column for column in columns if column not in header]
    if missing:
        what = "is not a table of openb: it has no column " + ", ".join(missing)
        problems.append(errors.Problem(str(file), 1, 1, "", what))
        return
    bad = 0
    for cells in reader:
        if not cells:
            continue
        row = _Row(file, reader.line_num, {}, problems)
        if len(cells) != len(header):
            row.problem("", f"has {len(cells)} cells where the header has {len(header)}")
        else:
            row.cells = dict(zip(header, cells, strict=True))
            yield row
        bad += not row.good
        if bad >= MAX_PROBLEMS:
            problems.append(errors.Problem(str(file), row.line, 1, "", "the rest was not read: too many mistakes"))
            return


def _read_nodes(
    file: Path, problems: list[errors.Problem], digest: hashlib._Hash
) -> list[tuple[str, core_v1_pb2.Node]]:
    found: list[tuple[str, core_v1_pb2.Node]] = []
    templates: dict[tuple[int, int, int, str], core_v1_pb2.Node] = {}
    seen: set[str] = set()
    for row in _rows(file, NODE_COLUMNS, problems, digest):
        name, model = row.cells["sn"], row.cells["model"]
        kind = (row.whole("cpu_milli"), row.whole("memory_mib"), row.whole("gpu"), model)
        wrong = names.dns_subdomain(name)
        if wrong:
            row.problem("sn", wrong[0])
        elif name in seen:
            row.problem("sn", f"a second node is called {name}")
        if model and names.label_value(model):
            row.problem("model", names.label_value(model)[0])
        seen.add(name)
        if not row.good:
            continue
        template = templates.get(kind)
        if template is None:
            template = templates[kind] = _node(*kind)
        found.append((name, template))
    return found


def _node(cpu_milli: int, memory_mib: int, gpus: int, model: str) -> core_v1_pb2.Node:
    node = core_v1_pb2.Node()
    labels = node.metadata.labels
    labels["kubernetes.io/arch"] = "amd64"
    labels["kubernetes.io/os"] = "linux"
    if model:
        labels[GPU_MODEL] = model
    amounts = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi", "pods": str(PODS_PER_NODE)}
    if gpus:
        amounts |= {GPU: str(gpus), GPU_MILLI: str(1000 * gpus)}
    for name, amount in sorted(amounts.items()):
        node.status.capacity[name].string = amount
        node.status.allocatable[name].string = amount
    return node


_PodKind = tuple[int, int, int, int, str, str, bool]


def _read_pods(
    file: Path,
    problems: list[errors.Problem],
    digest: hashlib._Hash,
    speed_up: float,
    run_speed_up: float,
    start_ns: int,
    limit: int | None,
) -> Trace:
    templates: list[core_v1_pb2.Pod] = []
    index_of: dict[_PodKind, int] = {}
    found: list[tuple[int, int, int, float]] = []  # created, row, template, run seconds
    for row in _rows(file, POD_COLUMNS, problems, digest):
        if limit is not None and len(found) >= limit:
            break
        cells = row.cells
        qos = cells["qos"]
        if qos not in SERVICES:
            row.problem("qos", f"must be one of {', '.join(SERVICES)}, not {qos!r}")
        created = row.whole("creation_time")
        ended = row.whole("deletion_time")
        began = row.whole("scheduled_time") if cells["scheduled_time"] else created
        if row.good and ended < began:
            row.problem("deletion_time", f"{ended} is before {began}, when the pod began")
        kind = (
            row.whole("cpu_milli"),
            row.whole("memory_mib"),
            row.whole("num_gpu"),
            row.whole("gpu_milli"),
            cells["gpu_spec"],
            qos,
            cells["pod_phase"] == "Failed",
        )
        if row.good and kind[3] > 1000:
            row.problem("gpu_milli", f"must be at most 1000, not {kind[3]}")
        if not row.good:
            continue
        template = index_of.get(kind)
        if template is None:
            template = index_of[kind] = len(templates)
            templates.append(_pod(*kind))
        found.append((created, len(found), template, (ended - began) / run_speed_up))
    found.sort()
    return Trace(
        templates=tuple(templates),
        at_ns=tuple(start_ns + int(created * SECOND_NS / speed_up) for created, _, _, _ in found),
        template=tuple(template for _, _, template, _ in found),
        run_s=tuple(run_s for _, _, _, run_s in found),
        digest=digest.hexdigest(),
    )


def _pod(
    cpu_milli: int, memory_mib: int, gpus: int, gpu_milli: int, gpu_spec: str, qos: str, failed: bool
) -> core_v1_pb2.Pod:
    service = SERVICES[qos]
    pod = core_v1_pb2.Pod()
    pod.metadata.namespace = "default"
    if failed:
        pod.metadata.annotations[manifests.EXIT_CODE] = "1"
    pod.spec.priorityClassName = service.priority_class
    pod.spec.restartPolicy = "Never"
    resources = pod.spec.containers.add(name="main", image=manifests.DEFAULT_IMAGE).resources
    resources.requests["cpu"].string = f"{cpu_milli}m"
    resources.requests["memory"].string = f"{memory_mib}Mi"
    if service.limits:
        resources.limits["cpu"].string = f"{service.limits * cpu_milli}m"
        resources.limits["memory"].string = f"{service.limits * memory_mib}Mi"
    shares = {}
    if gpus and gpu_milli:
        shares[GPU_MILLI] = gpus * gpu_milli
        if gpu_milli == 1000:
            shares[GPU] = gpus
    for name, amount in sorted(shares.items()):
        resources.requests[name].string = str(amount)
        resources.limits[name].string = str(amount)
    if gpu_spec:
        affinity = pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
        wanted = affinity.nodeSelectorTerms.add().matchExpressions.add(key=GPU_MODEL, operator="In")
        wanted.values.extend(gpu_spec.split("|"))
    return pod


# --- GPUs as devices --------------------------------------------------------------------------------------------------


def _devices(node: core_v1_pb2.Node) -> Devices | None:
    """Those of a node that offers them as extended resources."""
    count = int(node.status.capacity[GPU].string) if GPU in node.status.capacity else 0
    if not count:
        return None
    model = node.metadata.labels.get(GPU_MODEL, "")
    attributes = {"model": model} if model else {}
    return Devices(driver=DRIVER, count=count, attributes=attributes, capacity={MILLI: "1000"}, shared=True)


def _takes(pod: core_v1_pb2.Pod) -> bool:
    return GPU_MILLI in pod.spec.containers[0].resources.requests


def _claim(pod: core_v1_pb2.Pod) -> resource_v1_pb2.ResourceClaimTemplate:
    """What a template of pods claims in place of its extended resources, which it loses."""
    resources = pod.spec.containers[0].resources
    milli = int(resources.requests[GPU_MILLI].string)
    count = int(resources.requests[GPU].string) if GPU in resources.requests else -(-milli // 1000)
    for amounts in (resources.requests, resources.limits):
        for name in (GPU, GPU_MILLI):
            amounts.pop(name, None)
    models: list[str] = []
    if pod.spec.HasField("affinity"):
        terms = pod.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms
        models = list(terms[0].matchExpressions[0].values)
        pod.spec.ClearField("affinity")
    made = resource_v1_pb2.ResourceClaimTemplate()
    made.metadata.namespace = pod.metadata.namespace
    made.metadata.name = "-".join(("openb", f"{count}x{milli // count}", *(model.lower() for model in models)))
    asked = made.spec.spec.devices.requests.add(name="gpu").exactly
    asked.deviceClassName, asked.allocationMode, asked.count = DRIVER, "ExactCount", count
    asked.capacity.requests[MILLI].string = str(milli // count)
    if models:
        names_of = ", ".join(f'"{model}"' for model in models)
        asked.selectors.add().cel.expression = f'device.attributes["{DRIVER}"].model in [{names_of}]'
    pod.spec.resourceClaims.add(name="gpu", resourceClaimTemplateName=made.metadata.name)
    resources.claims.add(name="gpu")
    return made
