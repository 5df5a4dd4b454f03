"""What has struck a cluster, as a script: a fragment of a scenario that strikes the same again at the same moments.

Faults of actors come at the time at which they came, and strike whom they struck. Faults of clients come with the
request that they struck, counted from the start of the cluster: the third patch of ``deployments/status`` of ``web`` by
this program. Chance and patterns are decided: a script has neither.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from kemu.emulated.objects.conversion import user_files, yaml_texts
from kemu.errors import KemuError
from kemu.runtime.env import SECOND_NS
from kemu.runtime.faults.kinds import CLIENT_FAULTS, KINDS, Form, Kind
from kemu.runtime.runlog import folders
from kemu.runtime.runlog.events import (
    FaultBegun,
    FaultEnded,
    FaultHit,
    RequestStruck,
)
from kemu.runtime.runlog.frames import Entry

FILE = folders.CHAOS_FILE
_WHOM = ("agent", "verb", "resource", "namespace", "name")
_SPECIAL = re.compile(r"([*?[])")


class Script:
    """Made of the events of a run as they come."""

    def __init__(self, for_good: Collection[str] = ()) -> None:
        """``for_good``: ids of crashes after which nothing is started again, where the log does not say so."""
        self._for_good = for_good
        self._entries: list[dict[str, Any]] = []
        self._open: dict[str, list[tuple[dict[str, Any], int]]] = {}
        """Faults that have not ended, by their ids, with the times at which they began."""
        self._hit: set[str] = set()
        """Those that waited for a step, and came to it."""

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """A ``LogSink``."""
        if isinstance(data, RequestStruck):
            self._entries.append(_of_strike(data, len(self._entries)))
        elif isinstance(data, FaultBegun):
            if data.what in CLIENT_FAULTS:
                return
            entry = _of_fault(KINDS[data.what], data, time_ns, len(self._entries))
            if data.what == "crash" and (data.get("restart") is False or data.id in self._for_good):
                entry["crash"]["restart"] = False
            self._entries.append(entry)
            self._open.setdefault(data.id, []).append((entry, time_ns))
        elif isinstance(data, FaultHit) and self._open.get(data.id):
            entry, _ = self._open[data.id][0]
            if data.id not in self._hit and ("tornWrite" in entry or entry.get("crash", {}).get("step")):
                # It waited for this: its time begins now.
                self._hit.add(data.id)
                self._open[data.id][0] = entry, time_ns
        elif isinstance(data, FaultEnded) and (begun := self._open.get(data.id)):
            entry, begun_ns = begun.pop(0)
            what = next(name for name in KINDS if name in entry)
            if KINDS[what].lasts and time_ns > begun_ns:
                entry["for"] = _duration(time_ns - begun_ns)

    @property
    def entries(self) -> list[dict[str, Any]]:
        return self._entries

    def write(self, folder: Path) -> None:
        """Into a run folder, if anything has struck."""
        if self._entries:
            (folder / FILE).write_text(self.text())

    def text(self) -> str:
        """YAML; empty where nothing has struck."""
        if not self._entries:
            return ""
        lines = ["# What has struck: kemu up … --chaos FILE strikes the same again.", "chaos:"]
        lines += [f"  - {_flow(entry)}" for entry in self._entries]
        return "\n".join(lines) + "\n"


def of(events: Iterable[Entry], for_good: Collection[str] = ()) -> Script:
    script = Script(for_good)
    for event in events:
        script.feed(*event)
    return script


def load(file: Path) -> list[dict[str, Any]]:
    """Read a file: see :func:`read`. Raises KemuError."""
    try:
        return read(user_files.read_text(file), str(file))
    except user_files.FileProblem as error:
        raise KemuError(f"{file} {error}") from None
    except ValueError as error:
        raise KemuError(str(error)) from None


def read(text: str, name: str) -> list[dict[str, Any]]:
    """The faults of a script: a list, below ``chaos``, or below ``spec.chaos`` of a scenario. Raises ValueError."""
    try:
        found = yaml_texts.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"{name}: is not YAML: {error}") from None
    if isinstance(found, dict) and isinstance(found.get("spec"), dict):
        found = found["spec"]
    if isinstance(found, dict):
        found = found.get("chaos")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError(f"{name}: no list of faults below chaos")
    return found


def _of_strike(data: RequestStruck, number: int) -> dict[str, Any]:
    whom = {key: _SPECIAL.sub(r"[\1]", str(data[key])) for key in _WHOM if data.get(key)}
    detail: dict[str, Any] = {**whom, "nth": data.n}
    kind = KINDS[data.what]
    for key, value in data.effect.items():
        detail[key] = value if isinstance(value, str) else _written(kind.parameter(key).form, value)
    if kind.name == "cutStreams" and "events" not in detail:
        detail["fresh"] = True
    return {"id": f"struck-{number}", "at": "0s", kind.name: detail}


def _of_fault(kind: Kind, data: FaultBegun, time_ns: int, number: int) -> dict[str, Any]:
    detail: dict[str, Any] = {}
    if kind.name == "crash":
        detail = {"actor": data.actors} if data.actors else {"node": data.nodes}
        detail |= {key: data[key] for key in ("powerOff", "step") if data.get(key)}
    else:
        for one in kind.parameters:
            value = data.get(one.name)
            if value not in (None, "", [], False) and value != one.default:
                detail[one.name] = _written(one.form, value)
    return {"id": f"struck-{number}", "at": _duration(time_ns), kind.name: detail}


def _written(form: Form, value: Any) -> Any:
    """As a scenario writes it."""
    if form in (Form.TIME, Form.SECONDS, Form.SIGNED_SECONDS):
        if isinstance(value, Mapping):
            return {key: _written(form, each) for key, each in value.items()}
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _duration(round(value * SECOND_NS))
    if form is Form.BYTES:
        return str(int(value))
    return value


def _duration(time_ns: int) -> str:
    for unit, size in (("s", SECOND_NS), ("ms", 1_000_000), ("us", 1_000)):
        if time_ns % size == 0:
            return f"{time_ns // size}{unit}"
    return f"{time_ns}ns"


def _flow(entry: Mapping[str, Any]) -> str:
    return yaml.safe_dump(
        dict(entry), default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True
    ).strip()
