"""What containers print as their pod states it, in the annotation ``kemu.dev/logs`` or ``kemu.dev/logs.<container>``.

As data: a text, whose lines come at the start, or a list of lines:

    [Listening on port 80, {at: 5s, line: "{pod} is warm"}, {every: 10s, from: 5s, line: "tick {n}"}]

Times count from the start of the container. In a line ``{pod}``, ``{namespace}``, ``{container}``, ``{node}``,
``{restarts}`` and ``{n}`` (how often it was printed before) stand for what they say.
"""

from __future__ import annotations

import functools
import heapq
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

from kemu.emulated.objects import times
from kemu.emulated.objects.conversion import yaml_texts
from kemu.emulated.objects.plain import Json
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS

LOGS = "kemu.dev/logs"
NAMES = ("pod", "namespace", "container", "node", "restarts", "n")
_KEYS = ("at", "every", "from", "line")


class LogsError(ValueError):
    """It cannot be read."""


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    first_s: float = 0.0
    every_s: float | None = None
    """None: it comes once."""

    def between(self, first_s: float, last_s: float, names: Mapping[str, object]) -> Iterator[tuple[float, str]]:
        """What is printed from the first time on, and before the last one; seconds since the start."""
        if self.every_s is None:
            if first_s <= self.first_s < last_s:
                yield self.first_s, self._filled(names, 0)
            return
        number = max(0, int((first_s - self.first_s) // self.every_s))
        while (at_s := self.first_s + number * self.every_s) < last_s:
            if at_s >= first_s:
                yield at_s, self._filled(names, number)
            number += 1

    def _filled(self, names: Mapping[str, object], number: int) -> str:
        if "{" not in self.text:
            return self.text
        known = {**names, "n": number}
        return re.sub(r"\{([a-z]+)\}", lambda found: str(known.get(found[1], found[0])), self.text)


def parse(data: Json) -> tuple[Line, ...]:
    """Raises LogsError."""
    if isinstance(data, str):
        return tuple(Line(text) for text in data.splitlines())
    if not isinstance(data, list):
        raise LogsError("must be a text or a list of lines")
    found: list[Line] = []
    for number, one in enumerate(data):
        if isinstance(one, str | int | float) and not isinstance(one, bool):
            found += [Line(text) for text in str(one).splitlines() or [""]]
            continue
        if not isinstance(one, Mapping):
            raise LogsError(f"[{number}]: must be a text or a mapping with line")
        unknown = next((key for key in one if key not in _KEYS), None)
        if unknown is not None:
            raise LogsError(f"[{number}].{unknown}: unknown; there are: {', '.join(_KEYS)}")
        if not isinstance(one.get("line"), str):
            raise LogsError(f"[{number}].line: must be a text")
        if "at" in one and ("every" in one or "from" in one):
            raise LogsError(f"[{number}].at: cannot stand beside every and from")
        if "from" in one and "every" not in one:
            raise LogsError(f"[{number}].from: needs every")
        every_s = _seconds(one["every"], f"[{number}].every") if "every" in one else None
        if every_s is not None and every_s < 0.001:
            raise LogsError(f"[{number}].every: must be at least 1ms")
        key = "at" if "at" in one else "from"
        first_s = _seconds(one[key], f"[{number}].{key}") if key in one else 0.0
        found.append(Line(one["line"], first_s, every_s))
    return tuple(found)


def _seconds(data: Json, path: str) -> float:
    try:
        if isinstance(data, bool) or not isinstance(data, int | float | str):
            raise ValueError
        seconds = times.parse_duration(data) / SECOND_NS if isinstance(data, str) else float(data)
    except ValueError:
        raise LogsError(f"{path}: must be a duration such as 10s, not {data!r}") from None
    if not 0 <= seconds < 1e9:
        raise LogsError(f"{path}: must not be negative")
    return seconds


@functools.lru_cache(256)
def _parse_text(text: str) -> tuple[Line, ...]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError:
        try:
            data = yaml_texts.safe_load(text)
        except yaml.YAMLError:
            return parse(text)
        if not isinstance(data, list):
            return parse(text)
    try:
        return parse(data)
    except LogsError:
        return parse(text)


def of(pod: core_v1_pb2.Pod, container: str) -> tuple[Line, ...] | None:
    """None: the pod does not say. A text that is no list of lines is what is printed."""
    annotations = pod.metadata.annotations
    for name in (f"{LOGS}.{container}", LOGS):
        if name in annotations and (name != LOGS or any(one.name == container for one in pod.spec.containers)):
            return _parse_text(annotations[name])
    return None


def between(
    lines: tuple[Line, ...], pod: core_v1_pb2.Pod, container: str, restarts: int, first_s: float, last_s: float
) -> Iterator[tuple[float, str]]:
    """In the order of their times."""
    names = {
        "pod": pod.metadata.name,
        "namespace": pod.metadata.namespace,
        "container": container,
        "node": pod.spec.nodeName,
        "restarts": restarts,
    }
    return heapq.merge(*(line.between(first_s, last_s, names) for line in lines), key=lambda one: one[0])
