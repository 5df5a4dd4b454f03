"""The keys of ``timing``: how long the cluster's own work takes, and the presets that give all of them at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kemu.emulated.settings.distributed import TIME, Cost
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import INVALID, POSITIVE_SECONDS, SECONDS, Choice, Free, Key, Record, Report, Whole

PRESET = "preset"
API_VERSION, KIND = "kemu.dev/v1", "TimingPreset"
"""Of a file with a preset, as ``kemu calibrate`` writes it."""
_FILES = (".yaml", ".yml", ".json")

TIMES: dict[str, Key] = {
    "apiLatency": Key(TIME, "Between clients and API servers, one way."),
    "watchLatency": Key(TIME, "From API servers to watching clients."),
    "storeLatency": Key(TIME, "Between API servers and the store, one way."),
    "fsync": Key(TIME, "How long a disk takes to make what was written durable; 0 by default."),
    "apiService": Key(TIME, "How long an API server works at a request; no time by default."),
    "keepaliveTime": Key(
        SECONDS, "From one keepalive ping on a connection to the next; 0, the default: there is always one under way."
    ),
    "keepaliveTimeout": Key(
        POSITIVE_SECONDS, "How long its answer may take until the connection breaks; 5s by default."
    ),
    "schedulingCycle": Key(
        Cost(
            TIME,
            Record(
                {
                    "base": Key(TIME, "For every attempt."),
                    "perNode": Key(TIME, "For every node looked at."),
                    "perEvaluation": Key(TIME, "For every set of pods that an experiment switch tries on a node."),
                }
            ),
        ),
        "How long an attempt to schedule a pod takes.",
    ),
    "bind": Key(TIME, "From the decision until the binding is sent."),
    "kubeletSync": Key(TIME, "From what a kubelet hears until it acts."),
    "podStart": Key(TIME, "From admission until the containers run, where a pod does not say."),
    "imagePull": Key(TIME, "How long an image takes that the node does not have."),
}
"""The times of the cluster's own work."""

CLIENT_LIMITS = "clientLimits"
KUBERNETES = "kubernetes"
CORES = "cores"
_OTHERS: dict[str, Key] = {
    CORES: Key(
        Whole(1),
        "How many cores the API servers and schedulers share: what schedulingCycle and apiService say waits for a "
        "core. By default each of them works as if it were alone.",
    ),
    CLIENT_LIMITS: Key(
        Choice(("none", KUBERNETES)),
        "Whether clients without a clientConnection send as many requests a second as they like (none, the default) or "
        "as many as in Kubernetes: kube-scheduler 50, with bursts of 100, each controller 20 and 30, a kubelet 50 and "
        "100.",
    ),
}
"""What is no time."""


class Measured(NamedTuple):
    """A time of the preset ``realistic``."""

    time: Any
    """As a scenario writes it."""
    source: str
    """What it was measured on."""


REALISTIC: Mapping[str, Measured] = {
    "apiLatency": Measured(
        {"lognormal": {"median": "250us", "p99": "2ms"}},
        "TCP round trips between machines of one cloud region: 80 % within 500 us, a few above 1 ms "
        "(evanjones.ca, Network latencies, 2021); the rest is encoding and TLS",
    ),
    "storeLatency": Measured(
        {"lognormal": {"median": "150us", "p99": "1ms"}},
        "as apiLatency, on one machine or in one zone, where an API server and its etcd stand",
    ),
    "fsync": Measured(
        {"lognormal": {"median": "1.5ms", "p99": "9ms"}},
        "etcd asks for a disk whose fdatasync takes less than 10 ms at the 99th percentile (etcd.io, Hardware "
        "recommendations); drives of data centres take 1 to 2 ms (Using fio to tell whether your storage is fast "
        "enough for etcd, IBM 2019)",
    ),
    "watchLatency": Measured(
        {"lognormal": {"median": "3ms", "p99": "20ms"}},
        "what creation to binding leaves for it in a kubemark run: 9.3, 13.1 and 24.6 ms at the 50th, 90th and 99th "
        "percentile (kubernetes/kubernetes#42000)",
    ),
    "schedulingCycle": Measured(
        {"base": {"lognormal": {"median": "300us", "p99": "3ms"}}, "perNode": "1.4us"},
        "the median is kemu's default; ten times of it at the 99th percentile, the spread of API calls in a kubemark "
        "run of 1,000 nodes (kubernetes/kubernetes#24532)",
    ),
    "kubeletSync": Measured(
        {"lognormal": {"median": "200ms", "p99": "730ms"}},
        "binding to running with hollow kubelets, which start no containers: 200, 602 and 731 ms "
        "(kubernetes/kubernetes#42000)",
    ),
    "podStart": Measured(
        {"lognormal": {"median": "1.2s", "p99": "3.5s"}},
        "creation to ready on an idle kubelet: 1.47 s at the 50th, 1.56 s at the 99th percentile "
        "(kube-burner/kube-burner#200); 1.2 to 2.8 s and 2.7 to 6.9 s with 3 to 30 pods a node "
        "(kubernetes/kubernetes#3954)",
    ),
    "imagePull": Measured(
        {"lognormal": {"median": "2s", "p99": "60s"}},
        "starts of 200,000 images take hundreds of milliseconds to tens of seconds (An Empirical Study of Container "
        "Image Configurations and Their Impact on Start Times, CCGrid 2023)",
    ),
}
"""The times of a real cluster."""

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "constant": {},
    "realistic": {name: measured.time for name, measured in REALISTIC.items()},
}
"""Times as a scenario writes them; what a preset does not name has its default."""


def is_file(name: object) -> bool:
    """Whether it is a preset of the user's own."""
    return isinstance(name, str) and name.endswith(_FILES)


@dataclass(frozen=True)
class _PresetName(Choice):
    """One of kemu's, or a file."""

    def check(self, value: Any, path: Path, report: Report) -> Any:
        return value if is_file(value) else super().check(value, path, report)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [super().schema(), {"type": "string", "pattern": r"\.(ya?ml|json)$"}]}


_TIMING = Record(
    {
        PRESET: Key(
            _PresetName(tuple(PRESETS)),
            "Where times that are not stated come from: constant, realistic, or a file as kemu calibrate writes it.",
        ),
        **TIMES,
        **_OTHERS,
    }
)


@dataclass(frozen=True)
class Timing:
    """A preset by name, or single times, with or without a preset; checked, a mapping of times alone."""

    def check(self, value: Any, path: Path, report: Report) -> Any:
        if isinstance(value, str):
            if _TIMING.keys[PRESET].shape.check(value, path, report) is INVALID:
                return INVALID
            value = {PRESET: value}
        preset = value.get(PRESET) if isinstance(value, dict) else None
        if isinstance(preset, str) and preset in PRESETS:
            value = {**PRESETS[preset], **value}
        checked = _TIMING.check(value, path, report)
        if isinstance(checked, dict):
            checked.pop(PRESET, None)
        return checked

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [_TIMING.keys[PRESET].shape.schema(), _TIMING.schema()]}


_FILE = Record(
    {
        "apiVersion": Key(Choice((API_VERSION,)), "", required=True),
        "kind": Key(Choice((KIND,)), "", required=True),
        "measured": Key(Free(), "On what, and when."),
        "timing": Key(Timing(), "The times.", required=True),
        "sources": Key(Free(), "By key: what each time was measured on."),
    }
)


def of_file(data: Any, report: Report) -> Any:
    """The times of a preset file, checked; INVALID where there are none."""
    found = _FILE.check(data, (), report)
    return found.get("timing", INVALID) if isinstance(found, dict) else INVALID
