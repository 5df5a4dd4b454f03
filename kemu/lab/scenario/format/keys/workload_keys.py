"""The keys of streams of pods: when they come, how long they live, or the recorded trace that they are taken from.

:mod:`kemu.lab.scenario.playing.workloads` draws the pods, :mod:`kemu.lab.scenario.loading.objects.openb` reads the
trace.
"""

from __future__ import annotations

import contextlib
from typing import Any

from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.objects.plain import Json
from kemu.emulated.settings import values
from kemu.emulated.settings.distributed import TIME, Distribution
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import (
    DURATION,
    INVALID,
    RATE,
    Choice,
    Free,
    Key,
    ListOf,
    Named,
    Number,
    Record,
    Report,
    Switch,
    Text,
    Whole,
)


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

LIFE = Record(
    {
        "startSeconds": Key(_LIFETIME, "From admission until the containers run, in seconds."),
        "runSeconds": Key(_LIFETIME, "How long they run, in seconds; absent: for ever."),
        "exitCode": Key(Distribution(Number(0, 255)), "How they end; 0 by default."),
        "shutdownSeconds": Key(
            _LIFETIME, "How long they need to shut down, in seconds; 0 by default; bounded by the grace."
        ),
    }
)
LIVES = ListOf(
    Record(
        {
            "selector": Key(Free(), "Labels of the pods, or a LabelSelector; all pods by default."),
            "namespace": Key(Text(), "Their namespace; all by default."),
            **LIFE.keys,
            "usage": Key(Free(), "What they use over time, as in workloads."),
            "probes": Key(Free(), "What their containers answer to probes, as in workloads."),
        }
    )
)
ARRIVALS = Record(
    {
        "until": Key(DURATION, "No arrivals from then on; by default the end of the run."),
        "count": Key(Whole(0), "No more than so many; alone: all at once."),
    },
    choices={
        "poisson": Key(Record({"rate": Key(RATE, "5/s, 300/m.", required=True)}), "Independent arrivals."),
        "every": Key(TIME, "One after each such time, the first at the start."),
        "ramp": Key(
            Record({"from": Key(RATE, "At the start.", required=True), "to": Key(RATE, "At the end.", required=True)}),
            "Independent arrivals at a rate that grows (or falls) evenly.",
        ),
    },
    noun="arrival process",
    choice_required=False,
)
TRACE = Record(
    {
        "format": Key(Choice(("openb",)), "openb: the Alibaba GPU trace of 2023.", required=True),
        "nodes": Key(Text(), "CSV file of the nodes, found in --data DIR; absent: the nodes of the scenario."),
        "pods": Key(Text(), "CSV file of the pods, found in --data DIR.", required=True),
        "speedUp": Key(Number(positive=True), "All times of the trace are divided by it."),
        "runSpeedUp": Key(Number(positive=True), "Run times are divided by it instead: more pods run at once."),
        "limit": Key(Whole(0), "Only so many pods, from the first."),
        "kubelet": Key(kubelet_configurations.SHAPE, "KubeletConfiguration of the trace's nodes."),
        "digest": Key(Text(r"[0-9a-f]{64}", "a SHA-256"), "SHA-256 of the files: others are refused."),
    }
)
WORKLOAD = Record(
    {
        "name": Key(
            Text("[a-z0-9]([-a-z0-9]*[a-z0-9])?", "a name of lower-case letters, digits and -", 50),
            "Its pods are named <name>-<n>, from 0.",
            required=True,
        ),
        "start": Key(DURATION, "When it begins; 0s by default."),
    },
    choices={
        "arrivals": Key(ARRIVALS, "When pods come."),
        "trace": Key(TRACE, "Pods (and nodes) of a recorded trace."),
    },
    noun="source of pods",
    companions={
        "arrivals": Record(
            {
                "pods": Key(Free(), "The template: metadata and spec of a Pod.", required=True),
                "life": Key(LIFE, "How long its pods start, run and shut down."),
                "usage": Key(
                    Free(),
                    "What its pods use over time: cpu, memory, active_file, inactive_file, rootfs, logs, inodes, pids, "
                    "volumes, containers.",
                ),
                "probes": Key(
                    Free(), "What their containers answer to startup, readiness and liveness probes, and when."
                ),
                "replaceFinished": Key(
                    Switch(), "A pod that is preempted, evicted or rejected comes back under a new name."
                ),
            }
        ),
        "trace": Record(
            {
                "life": Key(LIFE, "startSeconds and shutdownSeconds of the trace's pods."),
                "replaceFinished": Key(
                    Switch(), "A pod that is preempted, evicted or rejected comes back under a new name."
                ),
            }
        ),
    },
)
