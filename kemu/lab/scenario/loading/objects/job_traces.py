"""Recorded jobs as pods: which of them are played, what they are called, and the templates that they are made from.

Role: what the readers of tables (:mod:`job_tables`, :mod:`job_formats`) put jobs into. A million jobs are numbers in
arrays and one list of names; pods that are alike share one template.
"""

from __future__ import annotations

import math
import random
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.internal.containers import MessageMap

from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.pods import gpu_cards
from kemu.lab.scenario.format.traces import Trace, TraceFiles
from kemu.lab.scenario.loading.objects import manifests
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

ORIGINAL = "kemu.dev/trace-name"
"""Annotation of a pod: what the trace calls its job."""
MAX_PODS = 1_000_000
"""Most pods of one trace: what a single run can still hold and tell about."""
LEAST_PRIORITY, MOST_PRIORITY = -(1 << 31), 1_000_000_000

_FOREVER = math.nan
_LONGEST_NAME = 63
"""A pod's name is the hostname in it, too."""
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Kind:
    """What pods have in common that share a template. Amounts are in thousandths (CPU, GPUs) and bytes."""

    cpu: int = 0
    cpu_limit: int = 0
    memory: int = 0
    memory_limit: int = 0
    storage: int = 0
    gpus: int = 0
    """Whole devices."""
    gpu_milli: int = 0
    """Shares of them; 0: they are counted as devices only."""
    priority_class: str = ""
    namespace: str = ""
    exit_code: int = 0


class TooMany(ValueError):
    """More pods than a run can hold."""


class Jobs:
    """The jobs of one trace, in the order of its file."""

    def __init__(self, base: core_v1_pb2.Pod, workload: str) -> None:
        """``base``: what all pods have; it has a container. ``workload``: names jobs that have no name."""
        self._base = base
        self._workload = workload
        self._submit = array("q")
        self._run = array("d")
        self._pods: list[tuple[int, ...]] = []
        self._names: list[str] = []
        self._index_of: dict[Kind, int] = {}
        self._alike: dict[tuple[int, ...], tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self._submit)

    def add(self, submit_ns: int, run_s: float | None, pods: Iterable[Kind], name: str) -> None:
        """``run_s``: None, for ever; ``pods``: one kind for each."""
        kinds = tuple(self._index_of.setdefault(kind, len(self._index_of)) for kind in pods)
        self._submit.append(submit_ns)
        self._run.append(_FOREVER if run_s is None else run_s)
        self._pods.append(self._alike.setdefault(kinds, kinds))
        self._names.append(name)

    @property
    def first_ns(self) -> int:
        """When the first of them arrives; 0 of none."""
        return min(self._submit, default=0)

    def trace(
        self, files: TraceFiles, start_ns: int, origin_ns: int, stream: random.Random, digest: str
    ) -> tuple[Trace, dict[str, int]]:
        """What is played of them, and the priority classes that they bring. ``origin_ns``: where the trace's time
        begins; ``stream``: chooses a sample. Raises TooMany."""
        chosen = self._chosen(files, origin_ns, stream)
        if sum(len(self._pods[index]) for index in chosen) > MAX_PODS:
            raise TooMany
        run_speed_up = files.run_speed_up or files.speed_up
        used: dict[int, int] = {}
        at_ns, template, run_s = [], [], []
        for index in chosen:
            since_ns = self._submit[index] - origin_ns - files.from_ns
            when_ns = start_ns + (since_ns if files.speed_up == 1 else int(since_ns / files.speed_up))
            lasts_s = None if math.isnan(self._run[index]) else self._run[index] / run_speed_up
            for kind in self._pods[index]:
                at_ns.append(when_ns)
                template.append(used.setdefault(kind, len(used)))
                run_s.append(lasts_s)
        kinds = list(self._index_of)
        has_names = any(self._names)
        trace = Trace(
            templates=tuple(_pod(self._base, kinds[kind]) for kind in used),
            at_ns=tuple(at_ns),
            template=tuple(template),
            run_s=tuple(run_s),
            digest=digest,
            names=tuple(_unique(self._base_names(chosen))) if has_names else (),
            originals=tuple(self._names[index] for index in chosen for _ in self._pods[index]) if has_names else (),
        )
        classes = {kinds[kind].priority_class for kind in used}
        return trace, {name: value for name in sorted(classes) if (value := priority_of(name)) is not None}

    def _chosen(self, files: TraceFiles, origin_ns: int, stream: random.Random) -> list[int]:
        first_ns = origin_ns + files.from_ns
        last_ns = None if files.until_ns is None else origin_ns + files.until_ns
        chosen = []
        for index, submit_ns in enumerate(self._submit):
            # Every job draws, so that a window does not change which jobs of it are taken.
            if files.sample is not None and stream.random() >= files.sample:
                continue
            if first_ns <= submit_ns and (last_ns is None or submit_ns < last_ns):
                chosen.append(index)
        chosen.sort(key=self._submit.__getitem__)
        return chosen if files.limit is None else chosen[: files.limit]

    def _base_names(self, chosen: Sequence[int]) -> Iterator[tuple[str, int]]:
        for number, index in enumerate(chosen):
            yield valid_name(self._names[index]) or f"{self._workload}-{number}", len(self._pods[index])


def valid_name(text: str) -> str:
    """A DNS label like the text; empty where it has no letter or digit."""
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-")[:_LONGEST_NAME].rstrip("-")


def _unique(jobs: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Names of the pods of jobs, given the name and the number of pods of each: ``a``, or ``a-0``, ``a-1``, …; a name
    that is taken gets a number more."""
    taken: set[str] = set()
    repeats: dict[str, int] = {}
    for name, pods in jobs:
        for number in range(pods):
            wanted = _with(name, f"-{number}") if pods > 1 else name
            found = wanted
            while found in taken:
                repeats[wanted] = repeats.get(wanted, 1) + 1
                found = _with(wanted, f"-{repeats[wanted]}")
            taken.add(found)
            yield found


def _with(name: str, suffix: str) -> str:
    return name[: _LONGEST_NAME - len(suffix)].rstrip("-") + suffix


def class_of(priority: int) -> str:
    """The priority class of a number."""
    return f"priority-{priority}" if priority >= 0 else f"priority-minus-{-priority}"


def priority_of(priority_class: str) -> int | None:
    """The number of such a class; None: it is not one of these."""
    match = re.fullmatch(r"priority-(minus-)?(0|[1-9][0-9]*)", priority_class)
    return None if match is None else int(match[2]) * (-1 if match[1] else 1)


def _pod(base: core_v1_pb2.Pod, kind: Kind) -> core_v1_pb2.Pod:
    pod = meta.copied(base)
    if kind.namespace:
        pod.metadata.namespace = kind.namespace
    if kind.exit_code:
        pod.metadata.annotations[manifests.EXIT_CODE] = str(kind.exit_code)
    if kind.priority_class:
        pod.spec.priorityClassName = kind.priority_class
    manifests.ends(pod)
    resources = pod.spec.containers[0].resources
    memory = quantities.format_value(kind.memory, quantities.Format.BINARY_SI)
    limit = quantities.format_value(kind.memory_limit, quantities.Format.BINARY_SI)
    storage = quantities.format_value(kind.storage, quantities.Format.BINARY_SI)
    _put(resources.requests, {"cpu": f"{kind.cpu}m", "ephemeral-storage": storage, "memory": memory}, kind)
    _put(resources.limits, {"cpu_limit": f"{kind.cpu_limit}m", "memory_limit": limit}, kind)
    gpus = {gpu_cards.GPU_MILLI: kind.gpu_milli, gpu_cards.GPU: kind.gpus}
    for name, amount in gpus.items():
        if amount:
            resources.requests[name].string = str(amount)
            resources.limits[name].string = str(amount)
    return pod


_FIELDS = {"ephemeral-storage": "storage"}


def _put(amounts: MessageMap[str, meta_v1_pb2.Quantity], texts: Mapping[str, str], kind: Kind) -> None:
    """Those of which there is any."""
    for name, text in texts.items():
        if getattr(kind, _FIELDS.get(name, name)):
            amounts[name.removesuffix("_limit")].string = text
