"""The keys of ``timing``: how long the cluster's own work takes, and the presets that give all of them at once."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any

from kemu.emulated.settings import documents
from kemu.emulated.settings.distributed import TIME, Cost
from kemu.emulated.settings.documents import Document, Path
from kemu.emulated.settings.shapes import INVALID, POSITIVE_SECONDS, SECONDS, Choice, Free, Key, Record, Report, Whole
from kemu.errors import Problem, ScenarioError

PRESET = "preset"
API_VERSION, KIND = "kemu.dev/v1", "TimingPreset"
"""Of a file with a preset, as ``kemu calibrate`` writes it."""
CONTROLLER_LAG = "controllerLag"
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
    CONTROLLER_LAG: Key(
        TIME, "From what a controller of kube-controller-manager hears until it acts, without its lag."
    ),
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


CONSTANT, REALISTIC = "constant", "realistic"
PRESETS = (CONSTANT, REALISTIC)
"""kemu's own: defaults only, and those that :func:`shipped` reads."""
_SHIPPED = FilePath(__file__).parent.parent / "presets"


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
            _PresetName(PRESETS),
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
        checked = _TIMING.check(value, path, report)
        if isinstance(checked, dict):
            preset = checked.pop(PRESET, CONSTANT)
            if not is_file(preset):  # the loader knows where files are
                checked = {**times(preset), **checked}
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


@functools.cache
def shipped(preset: str) -> Document:
    """The file of one of kemu's presets that has one."""
    return documents.read(_SHIPPED / f"{preset}.yaml")[0]


def written(preset: str) -> Mapping[str, Any]:
    """The times of one of kemu's presets, as a scenario writes them."""
    return {} if preset == CONSTANT else shipped(preset).data["timing"]


@functools.cache
def times(preset: str) -> Mapping[str, Any]:
    """Those of one of kemu's presets, checked. Raises ScenarioError for a file with mistakes."""
    if preset == CONSTANT:
        return {}
    document, problems = shipped(preset), list[Problem]()
    found = of_file(document.data, Report(document, problems))
    if problems:
        raise ScenarioError(problems)
    return MappingProxyType(found)
