"""Streams of pods: when they arrive and how long they live.

Role: used by the user actor (:mod:`kemu.lab.scenario.playing.user`). Every workload draws from random streams of its
own, named after it, so that one workload more or less changes nothing in another; and arrivals draw apart from
replacements, so that what a scheduler does to the pods changes nothing in those that come later.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kemu.emulated.apiserver.lives import drawn_text
from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.times import seconds_text
from kemu.emulated.settings import declared
from kemu.lab.scenario.arrivals import arrival_times
from kemu.lab.scenario.format.traces import Trace
from kemu.lab.scenario.format.workloads import REMAINING, Arrivals, PodLives, Workload
from kemu.lab.scenario.loading.objects import job_traces, manifests
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.runtime import distributions
from kemu.runtime.env import SECOND_NS
from kemu.runtime.random_streams import random_stream

LABEL = "kemu.dev/workload"
"""On every pod of a workload, with its name."""


def due_before(workload: Workload, seed: int, end_ns: int) -> int:
    """How many pods, replacements apart, the workload means to create before that time."""
    if workload.trace is not None:
        times: Iterable[int] = workload.trace.at_ns
    else:
        assert workload.arrivals is not None
        times = _arrivals(workload.name, workload.arrivals, seed)
    return sum(1 for _ in itertools.takewhile(lambda when_ns: when_ns < end_ns, times))


def _arrivals(name: str, arrivals: Arrivals, seed: int) -> Iterator[int]:
    return arrival_times(arrivals, random_stream(seed, "workload", name, "arrivals"))


class Stream:
    """The pods of one workload, one after the other."""

    def __init__(self, data: Mapping[str, Any], seed: int, stream_of: Callable[..., random.Random]) -> None:
        """``data`` as :func:`plain` made it; ``seed``: of the scenario, for arrivals, which are known beforehand
        (:func:`due_before`); ``stream_of``: the random streams of the run by name, for all else."""
        self.name: str = data["name"]
        self.namespace: str = data["namespace"]
        self.replace_finished: bool = data["replace_finished"]
        self.work: str = data["work"]
        """What a replacement has to do of the work of the pod that was lost; empty: what is drawn for it."""
        self._number = 0
        self._run_s: list[float | None] = []
        self._kinds: list[int] = []
        self._names: list[str] = []
        self._originals: list[str] = []
        """What a trace calls its jobs; empty: its pods are numbered."""
        self._lives = stream_of("workload", self.name, "life")
        self._second_lives = stream_of("workload", self.name, "replacements")
        self._life: list[tuple[str, distributions.Distribution]] = [
            (annotation, distributions.parse(data["life"][key]))
            for key, annotation in _ANNOTATIONS.items()
            if data["life"][key] is not None
        ]
        trace = data["trace"]
        if trace is not None:
            self._templates = [self._template(template) for template in trace["templates"]]
            self._kinds, self._run_s = trace["template"], trace["run_s"]
            self._names, self._originals = trace["names"], trace["originals"]
            self._times: Iterator[int] = iter(trace["at_ns"])
        else:
            self._templates = [self._template(data["template"])]
            self._times = _arrivals(self.name, declared.restored(Arrivals, data["arrivals"]), seed)
        self._arrived = 0
        self._arrival_of: dict[str, int] = {}
        """By ``namespace/name`` of a pod: the arrival that it replaces in the end, or its own."""

    def _template(self, data: bytes) -> core_v1_pb2.Pod:
        pod = core_v1_pb2.Pod.FromString(data)
        pod.metadata.labels[LABEL] = self.name
        return pod

    def next_ns(self) -> int | None:
        """When the next pod comes; None: no more come."""
        return next(self._times, None)

    def arrival(self) -> tuple[int, core_v1_pb2.Pod]:
        """The next pod, and its number."""
        index = self._arrived
        self._arrived += 1
        return self._pod(index, self._lives)

    def replacement(self, lost: core_v1_pb2.Pod, ran_ns: int) -> tuple[int, core_v1_pb2.Pod]:
        """A replacement of that pod, with the next free number. Its life is drawn anew, but for how long it runs where
        the workload has a rule for that. ``ran_ns``: how long the lost pod had run."""
        arrival = self._arrival_of[f"{lost.metadata.namespace}/{lost.metadata.name}"]
        number, pod = self._pod(arrival, self._second_lives, is_again=True)
        run_s = lost.metadata.annotations.get(manifests.RUN_SECONDS)
        if self.work and run_s is not None:
            done_s = ran_ns / SECOND_NS if self.work == REMAINING else 0.0
            left_s = run_s if not done_s else seconds_text(max(0.0, float(run_s) - done_s))
            pod.metadata.annotations[manifests.RUN_SECONDS] = left_s
        return number, pod

    def _pod(self, arrival: int, lives: random.Random, *, is_again: bool = False) -> tuple[int, core_v1_pb2.Pod]:
        number = self._number
        self._number += 1
        pod = meta.copied(self._templates[self._kinds[arrival] if self._kinds else 0])
        annotations = pod.metadata.annotations
        if self._names:
            name = self._names[arrival]
            pod.metadata.name = f"{name}.r{number}" if is_again else name
            annotations[job_traces.ORIGINAL] = self._originals[arrival]
        else:
            pod.metadata.name = f"{self.name}-{number}"
        if self.replace_finished:
            self._arrival_of[f"{pod.metadata.namespace}/{pod.metadata.name}"] = arrival
        for name, distribution in self._life:
            annotations[name] = drawn_text(name, distribution.draw(lives))
        if self._run_s:
            run_s = self._run_s[arrival]
            if run_s is not None:
                annotations[manifests.RUN_SECONDS] = seconds_text(run_s)
        return number, pod


_ANNOTATIONS = {
    "start_s": manifests.START_SECONDS,
    "run_s": manifests.RUN_SECONDS,
    "exit_code": manifests.EXIT_CODE,
    "shutdown_s": manifests.SHUTDOWN_SECONDS,
}
"""Fields of a Life and where a pod carries them."""


def plain(workload: Workload) -> dict[str, Any]:
    """A workload as plain data, for the actor's configuration."""
    return {
        "name": workload.name,
        "namespace": workload.namespace,
        "replace_finished": bool(workload.replace_finished),
        "work": workload.work,
        "template": None if workload.template is None else _bytes(workload.template),
        "arrivals": declared.plain(workload.arrivals),
        "trace": None if workload.trace is None else _plain_trace(workload.trace),
        "life": declared.plain(workload.life),
    }


def plain_lives(lives: PodLives) -> dict[str, Any]:
    """How pods live that do not say, as plain data for API servers."""
    patterns = {key: getattr(lives, key) for key in ("owner", "image", "command", "args")}
    return {
        **{key: pattern for key, pattern in patterns.items() if pattern is not None},
        "namespace": lives.namespace or "",
        "selector": convert.from_json(meta_v1_pb2.LabelSelector, lives.selector).SerializeToString(deterministic=True),
        "drawn": {
            annotation: getattr(lives.life, field)
            for field, annotation in _ANNOTATIONS.items()
            if getattr(lives.life, field) is not None
        },
        "annotations": dict(lives.annotations),
    }


def _plain_trace(trace: Trace) -> dict[str, Any]:
    return {
        "templates": [_bytes(template) for template in trace.templates],
        "at_ns": list(trace.at_ns),
        "template": list(trace.template),
        "run_s": list(trace.run_s),
        "names": list(trace.names),
        "originals": list(trace.originals),
    }


def _bytes(pod: core_v1_pb2.Pod) -> bytes:
    return pod.SerializeToString(deterministic=True)
