"""The feature gates of Kubernetes, and what kemu does about each.

``gates.tsv`` has the gates of one version, from the list that Kubernetes keeps of them
(``test/compatibility_lifecycle/reference/versioned_feature_list.yaml``), each with a word of ours:

does      kemu behaves as with the gate at its default
switch    so it does, and a scenario can switch it
lacks     the gate is on by default, and kemu does not behave so
off       the gate is off by default, and kemu has nothing of it
nothing   nothing that kemu emulates would differ
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from kemu.errors import KemuError

FILE = Path(__file__).with_name("gates.tsv")
DOES, SWITCH, LACKS, OFF, NOTHING = WORDS = ("does", "switch", "lacks", "off", "nothing")
UNKNOWN = "?"
"""In place of a word: a gate that is new, of which nothing has been said."""
_STAGES = {"Alpha", "Beta", "GA", "Deprecated"}


@dataclass(frozen=True)
class Gate:
    name: str
    stage: str
    """``Alpha``, ``Beta``, ``GA`` or ``Deprecated``."""
    is_on: bool
    """By default."""
    is_locked: bool
    """Nobody can switch it."""
    since: str
    """Version from which on this is so: ``1.36``."""
    word: str = UNKNOWN
    """What kemu does: one of :data:`WORDS`."""
    note: str = ""

    def line(self) -> str:
        """As in the file."""
        default, locked = "on" if self.is_on else "off", "locked" if self.is_locked else ""
        return "\t".join((self.name, self.stage, default, locked, self.since, self.word, self.note))

    @property
    def default(self) -> str:
        """In words: ``Beta, on``."""
        return f"{self.stage}, {'on' if self.is_on else 'off'}{', locked' if self.is_locked else ''}"


@dataclass(frozen=True)
class Gates:
    version: str
    """Of Kubernetes."""
    by_name: Mapping[str, Gate]

    def __iter__(self) -> Iterator[Gate]:
        return iter(self.by_name.values())


def known(file: Path = FILE) -> Gates:
    """Those of ``gates.tsv``."""
    head, *lines = file.read_text().splitlines()
    found = {}
    for line in lines:
        name, stage, default, locked, since, word, note = line.split("\t")
        found[name] = Gate(name, stage, default == "on", bool(locked), since, word, note)
    return Gates(head.removeprefix("# "), found)


def read(file: Path, version: str) -> Gates:
    """A list of Kubernetes, ``versioned_feature_list.yaml``. Raises KemuError with what is wrong where."""
    try:
        document: Any = yaml.load(file.read_text(), yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise KemuError(f"{file}: {error}") from None
    if not isinstance(document, list) or not document:
        raise KemuError(f"{file}: is no list of feature gates (versioned_feature_list.yaml)")
    found = {}
    for place, one in enumerate(document):
        try:
            spec = one["versionedSpecs"][-1]
            gate = Gate(one["name"], spec["preRelease"], spec["default"], spec["lockToDefault"], spec["version"])
        except (TypeError, KeyError, IndexError) as error:
            raise KemuError(f"{file}: [{place}] is no feature gate: {error!r}") from None
        if gate.stage not in _STAGES:
            raise KemuError(f"{file}: [{place}] {gate.name}: there is no stage {gate.stage!r}")
        found[gate.name] = gate
    return Gates(version, dict(sorted(found.items(), key=lambda each: each[0].lower())))


def summary(gates: Gates) -> str:
    """How many gates have each word."""
    counts = Counter(one.word for one in gates)
    words = ", ".join(f"{counts[word]} {word}" for word in WORDS)
    return f"{len(gates.by_name)} gates: {words}"


def differences(before: Gates, after: Gates) -> list[str]:
    """What another version changes, a line for each gate."""
    found = []
    for name in sorted(before.by_name.keys() | after.by_name.keys(), key=str.lower):
        was, now = before.by_name.get(name), after.by_name.get(name)
        if was is None and now is not None:
            found.append(f"+ {name}: {now.default}")
        elif now is None and was is not None:
            found.append(f"- {name}: was {was.default}; kemu: {was.word}")
        elif was is not None and now is not None and was.default != now.default:
            found.append(f"  {name}: {was.default} -> {now.default}; kemu: {was.word}")
    return found


def updated(before: Gates, after: Gates) -> Gates:
    """The gates of ``after`` with the words of ``before``; gates that are new, or whose default has changed, have
    :data:`UNKNOWN`."""
    found = {}
    for name, gate in after.by_name.items():
        was = before.by_name.get(name)
        holds = was is not None and was.is_on == gate.is_on
        found[name] = replace(gate, word=was.word, note=was.note) if was is not None and holds else gate
    return Gates(after.version, found)


def write(gates: Gates, file: Path = FILE) -> None:
    file.write_text("".join([f"# {gates.version}\n", *(f"{gate.line()}\n" for gate in gates)]))
