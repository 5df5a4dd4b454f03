"""Streams of pods: when they come, how long they live, or the recorded trace that they are taken from.

:mod:`kemu.lab.scenario.playing.workloads` draws the pods, :mod:`traces` says which files a trace is read from.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kemu.emulated.kubelet.logs import stated as logs
from kemu.emulated.kubelet.probes import answers
from kemu.emulated.kubelet.usage import usages
from kemu.emulated.objects import selectors
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.plain import Json
from kemu.emulated.settings import values
from kemu.emulated.settings.declared import REQUIRED, Complaint, Section, setting
from kemu.emulated.settings.distributed import TIME, Distribution
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import (
    DURATION,
    INVALID,
    RATE,
    Choice,
    Free,
    Named,
    Number,
    Report,
    ScalarOr,
    Switch,
    Text,
    Whole,
)
from kemu.lab.scenario.format.traces import Trace, TraceFiles
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2


class _Seconds(Number):
    """A number of seconds, as the annotations of a pod state it; people write a duration."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                seconds = values.duration_s(value)
                report.add(path, f"must be a number of seconds, not the text {value!r}", f"write {seconds:g}")
                return INVALID
        return super().check(value, path, report)


_LIFETIME = Named("numberOfSeconds", Distribution(_Seconds(0)))


class Selector(Free):
    """A LabelSelector or, in short, its labels; checked, it is in JSON."""

    def check(self, value: Json, path: Path, report: Report) -> object:
        if super().check(value, path, report) is INVALID or not isinstance(value, dict):
            return INVALID
        selector = value if "matchLabels" in value or "matchExpressions" in value else {"matchLabels": value}
        try:
            selectors.compile_labels(convert.from_json(meta_v1_pb2.LabelSelector, selector))
        except convert.ConversionError as error:
            for problem in error.problems:
                report.add(path, f"{problem.path}: {problem.message}", problem.suggestion)
        except selectors.SelectorError as error:
            report.add(path, str(error))
        return selector


@dataclass(frozen=True, kw_only=True)
class Life:
    """How the pods of a workload live; each a number or a distribution, None where nothing was said."""

    start_s: Any = setting(_LIFETIME, "From admission until the containers run, in seconds.", key="startSeconds")
    run_s: Any = setting(_LIFETIME, "How long they run, in seconds; absent: for ever.", key="runSeconds")
    exit_code: Any = setting(Distribution(Number(0, 255)), "How they end; 0 by default.")
    shutdown_s: Any = setting(
        _LIFETIME,
        "How long they need to shut down, in seconds; 0 by default; bounded by the grace.",
        key="shutdownSeconds",
    )


_PATTERN = Text(".+", "a pattern such as web-*")
_HANDLER = Text(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", "a function, as module:function")


@dataclass(frozen=True, kw_only=True)
class PodLives:
    """How pods live that do not say, those of manifests and those that controllers make."""

    selector: Mapping[str, Any] = setting(
        Selector(), "Labels of the pods, or a LabelSelector; all pods by default.", {}
    )
    namespace: str | None = setting(Text(), "Their namespace; all by default.")
    owner: str | None = setting(
        Text(".+/.+", "a kind and a name, as Job/*"), "Their controller: its kind and a pattern for its name."
    )
    image: str | None = setting(
        _PATTERN, "A pattern for the image of a container; without / only its last part, without : no tag."
    )
    command: str | None = setting(_PATTERN, "A pattern for its command, with blanks between the words.")
    args: str | None = setting(_PATTERN, "A pattern for its args, with blanks between them.")
    life: Life = setting(Section(Life), "", {}, inline=True)
    usage: Mapping[str, Any] | None = setting(Free(), "What they use over time, as in workloads.")
    probes: Mapping[str, Any] | None = setting(
        Free(), 'What their containers answer to probes, as in workloads; "*": each that matches.'
    )
    logs: Any = setting(
        Free(mapping=False), "What their containers print: a text, or lines, each a text or {at or every, from, line}."
    )
    exec: str | None = setting(_HANDLER, "Who answers kubectl exec, in kemu up: module:function.")
    attach: str | None = setting(_HANDLER, "Who answers kubectl attach, in kemu up: module:function.")
    port_forward: str | None = setting(_HANDLER, "Who answers kubectl port-forward, in kemu up: module:function.")

    @property
    def is_of_containers(self) -> bool:
        """It is about single containers, not about whole pods."""
        return any(one is not None for one in (self.image, self.command, self.args))

    @property
    def handlers(self) -> Mapping[str, str]:
        """``module:function`` by what is asked of a container."""
        stated = {"exec": self.exec, "attach": self.attach, "portforward": self.port_forward}
        return {key: value for key, value in stated.items() if value is not None}

    @property
    def annotations(self) -> Mapping[str, str]:
        """``usage``, ``probes`` and ``logs``, as a pod states them."""
        stated = {usages.USAGE: self.usage, answers.PROBES: self.probes, logs.LOGS: self.logs}
        return {name: json.dumps(value) for name, value in stated.items() if value is not None}

    def complaints(self) -> Iterator[Complaint]:
        if self.life == Life() and not self.annotations and not self.handlers:
            hint = "startSeconds, runSeconds, usage, probes, logs, …"
            yield Complaint((), "says nothing about the life of its pods", hint, alone=True)
        checked: tuple[tuple[str, Any, Callable[[Any], object]], ...] = (
            ("usage", self.usage or {}, usages.parse),
            ("probes", self.probes or {}, answers.parse),
            ("logs", self.logs or "", logs.parse),
        )
        for key, value, parse in checked:
            try:
                parse(value)
            except ValueError as error:
                yield Complaint((key,), str(error))
        if self.is_of_containers and set(self.usage or {}) & {"volumes", "containers", "pids"}:
            text = "of containers that image, command or args choose has no volumes, containers or pids"
            yield Complaint(("usage",), text)


@dataclass(frozen=True, kw_only=True)
class Poisson:
    rate_per_s: float = setting(RATE, "5/s, 300/m.", key="rate", choice=True)
    """Of a load, set once the nodes are known."""
    load: float | None = setting(
        Number(positive=True),
        "Instead: how much of what the nodes can allocate the pods keep requested, as 0.95.",
        choice=True,
    )
    of: str = setting(Text(), "Of which resource; {default} by default.", "cpu", beside=["load"])


@dataclass(frozen=True, kw_only=True)
class Ramp:
    from_per_s: float = setting(RATE, "At the start.", REQUIRED, key="from")
    to_per_s: float = setting(RATE, "At the end.", REQUIRED, key="to")


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """When the pods of a workload come; without a process, all ``count`` at the start."""

    until_ns: int = setting(DURATION, "No arrivals from then on; by default the end of the run.")
    count: int | None = setting(Whole(0), "No more than so many; alone: all at once.")
    poisson: Poisson | None = setting(Section(Poisson, noun="rate"), "Independent arrivals.", choice=True)
    every: Any = setting(TIME, "One after each such time, the first at the start.", choice=True)
    ramp: Ramp | None = setting(
        Section(Ramp), "Independent arrivals at a rate that grows (or falls) evenly.", choice=True
    )
    start_ns: int = 0
    """As the workload."""

    def complaints(self) -> Iterator[Complaint]:
        if self.every == 0:
            yield Complaint(("every",), "must be more than 0", "for all at once write count alone")
        if self == Arrivals(until_ns=self.until_ns):
            text = "has no arrival process: one of poisson, every, ramp or count"
            yield Complaint((), text, alone=True)


WHOLE, REMAINING = "whole", "remaining"


@dataclass(frozen=True, kw_only=True)
class Replacement:
    """How a pod comes back that was lost."""

    work: str = setting(
        Choice((WHOLE, REMAINING)),
        "How long its replacement runs: as long as it should have run, or what was left of that.",
        REQUIRED,
    )


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A stream of pods named ``<name>-<n>``."""

    name: str = setting(
        Text("[a-z0-9]([-a-z0-9]*[a-z0-9])?", "a name of lower-case letters, digits and -", 50),
        "Its pods are named <name>-<n>, from 0.",
        REQUIRED,
    )
    start_ns: int = setting(DURATION, "When it begins; {default} by default.", "0s")
    arrivals: Arrivals | None = setting(
        Section(Arrivals, noun="arrival process", choice_required=False), "When pods come.", choice=True
    )
    files: TraceFiles | None = setting(
        Section(TraceFiles), "Pods (and nodes) of a recorded trace.", key="trace", choice=True
    )
    pods: Mapping[str, Any] | None = setting(
        Free(), "The template: metadata and spec of a Pod.", required=True, beside=["arrivals"]
    )
    life: Life = setting(
        Section(Life),
        "How long its pods start, run and shut down.",
        {},
        beside={"arrivals": "", "trace": "What the trace does not tell of its pods: startSeconds, shutdownSeconds, …"},
    )
    usage: Mapping[str, Any] | None = setting(
        Free(),
        "What its pods use over time: cpu, memory, active_file, inactive_file, rootfs, logs, inodes, pids, "
        "volumes, containers.",
        beside=["arrivals"],
    )
    probes: Mapping[str, Any] | None = setting(
        Free(),
        "What their containers answer to startup, readiness and liveness probes, and when.",
        beside=["arrivals"],
    )
    replace_finished: Any = setting(
        ScalarOr(Switch(), Section(Replacement)),
        "A pod that is preempted, evicted or rejected comes back under a new name.",
        False,
        beside=["arrivals", "trace"],
    )
    template: core_v1_pb2.Pod | None = field(default=None, compare=False)
    """Made of ``pods``, or what all pods of a trace have."""
    trace: Trace | None = None
    """What the files hold."""

    @property
    def namespace(self) -> str:
        """Of its pods; empty: they are in several."""
        if self.trace is not None:
            namespaces = list(self.trace.namespaces)
            return namespaces[0] if len(namespaces) == 1 else "" if namespaces else "default"
        return "default" if self.template is None else self.template.metadata.namespace

    @property
    def work(self) -> str:
        """What a replacement has to do of the work of the pod that was lost; empty: what is drawn for it."""
        return self.replace_finished.work if isinstance(self.replace_finished, Replacement) else ""

    def complaints(self) -> Iterator[Complaint]:
        if self.arrivals is not None and self.arrivals.until_ns is not None and self.arrivals.until_ns <= self.start_ns:
            text = f"is not after the start at {values.duration_text(self.start_ns)}"
            yield Complaint(("arrivals", "until"), text)
        for key, value in (("runSeconds", self.life.run_s), ("exitCode", self.life.exit_code)):
            if self.files is not None and value is not None and self._tells(key):
                yield Complaint(("life", key), "is told by the trace", key=True)

    def _tells(self, key: str) -> bool:
        """Whether the trace says how its pods live."""
        assert self.files is not None
        columns = self.files.columns
        if columns is None:
            return True
        return columns.exit_code is not None if key == "exitCode" else (columns.run_s or columns.end) is not None
