"""Tapes: what is kept of a failure, so that it is the first thing to run the next time, and can be replayed by hand.

A tape of a scenario is a scenario that stands alone (``kemu run TAPE``), with the seed and the holds of the failing
run. A tape of a program has its seed and holds only: the program is in the test. Both begin with the name of the test,
and digests of what the test ran then, part by part, by which one knows what has changed since.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from kemu.emulated.objects.plain import Json
from kemu.errors import KemuError
from kemu.lab.scenario import forms
from kemu.lab.scenario.loading import holds as hold_documents
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.holds import Hold

_TEST = "# test: "
_INPUTS = "# inputs: "
KIND = "Tape"


@dataclass(frozen=True)
class Tape:
    """One failure. Of ``scenario`` and ``seed`` with ``holds`` there is one."""

    test: str
    """The node id of the test."""
    scenario: Scenario | None = None
    seed: int = 0
    holds: tuple[Hold, ...] = ()
    file: Path | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Digests of what the test ran then, by part; none: an older kemu made it."""

    def changed(self, inputs: Mapping[str, str]) -> list[str]:
        """The parts that are not what they were then."""
        parts = dict.fromkeys((*self.inputs, *inputs))
        return [part for part in parts if self.inputs.get(part) != inputs.get(part)] if self.inputs else []

    def text(self) -> str:
        head = f"{_TEST}{self.test}\n"
        if self.inputs:
            head += f"{_INPUTS}{json.dumps(self.inputs)}\n"
        if self.scenario is not None:
            return f"{head}{self.scenario.to_yaml()}"
        data = {
            "apiVersion": "kemu.dev/v1",
            "kind": KIND,
            "seed": self.seed,
            "holds": [hold_documents.as_data(hold) for hold in self.holds],
        }
        return f"{head}{yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=120)}"

    def with_only(self, holds: Sequence[Hold]) -> Tape:
        """The same run with these holds in place of its own."""
        scenario = None if self.scenario is None else forms.with_holds(self.scenario, holds)
        return replace(self, scenario=scenario, holds=tuple(holds))


def read(file: Path) -> Tape:
    """Raises KemuError for what is no tape, and ScenarioError for one whose scenario is no longer right."""
    try:
        text = file.read_text()
    except OSError as error:
        raise KemuError(f"{file}: {error.strerror}") from None
    first, _, rest = text.partition("\n")
    data: Any = yaml.safe_load(rest)
    if not first.startswith(_TEST) or not isinstance(data, dict):
        raise KemuError(f"{file} is no tape of a test")
    test = first.removeprefix(_TEST)
    second = rest.partition("\n")[0]
    inputs = _inputs(second.removeprefix(_INPUTS), file) if second.startswith(_INPUTS) else {}
    if data.get("kind") != KIND:
        scenario = loader.load(file)
        return Tape(test, scenario, scenario.seed, scenario.holds, file, inputs)
    return Tape(test, None, int(data["seed"]), hold_documents.of_data(data["holds"], str(file)), file, inputs)


def _inputs(text: str, file: Path) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise KemuError(f"{file} is damaged: its second line is no table of inputs")
    return {str(part): str(digest) for part, digest in found.items()}


def digest(value: Json) -> str:
    """Of a part of the inputs."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]


class Shelf:
    """The tapes of a project, a file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, test: str) -> list[Tape]:
        """Those of a test, oldest first; what can no longer be read is removed."""
        found = []
        for file in self._files(test):
            try:
                found.append(read(file))
            except (KemuError, yaml.YAMLError, KeyError):
                file.unlink(missing_ok=True)
        return found

    def has(self, test: str) -> bool:
        return bool(self._files(test))

    def put(self, tape: Tape) -> Tape:
        """Keep it. Two processes may do so at the same time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = tape.text()
        file = self.folder / f"{_stem(tape.test)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.yaml"
        beside = file.with_suffix(f".{os.getpid()}")
        beside.write_text(text)
        beside.replace(file)
        return replace(tape, file=file)

    def remove(self, tape: Tape) -> None:
        if tape.file is not None:
            tape.file.unlink(missing_ok=True)

    def _files(self, test: str) -> Sequence[Path]:
        found = [(path.stat().st_mtime_ns, path) for path in self.folder.glob(f"{_stem(test)}-*.yaml")]
        return [path for _, path in sorted(found)]


def _stem(test: str) -> str:
    """Readable, and different for different tests."""
    name = re.sub(r"[^\w.\-]+", "-", test.rpartition("/")[2])[:60].strip("-")
    return f"{name}-{hashlib.sha256(test.encode()).hexdigest()[:8]}"
