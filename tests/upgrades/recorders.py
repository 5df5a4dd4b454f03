"""The recorder, built with another version of Kubernetes.

Kubernetes changes its functions from version to version, so parts of the recorder may not compile. A function that does
not is made one that says so: what it asks cannot be asked then; everything else can. What is left out is listed, with
the compiler's words. It is to be mended in ``tests/conformance/recorder``, or in a copy of it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.upgrades import modules
from tests.upgrades.modules import UpgradeError

_SAID = re.compile(r"^(?:\./)?(\w+\.go):(\d+):\d+: (.+)$", re.MULTILINE)
_NO_TYPE = re.compile(r"undefined: (\w+\.\w+)$")
_UNUSED = re.compile(r'"([^"]+)" imported(?: as \w+)? and not used$')
_MOST_ROUNDS = 20


@dataclass
class Recorder:
    version: str
    program: Path
    without: dict[str, str] = field(default_factory=dict)
    """Functions that do not compile, as ``jobs.go: func newController``, with what the compiler says first."""
    roots: list[str] = field(default_factory=list)
    """Kinds that the version does not have."""

    def ask(self, kind: str, lines: Iterable[str] = (), timeout_s: float = 3600) -> str:
        """What the recorder prints for cases, one a line. Raises UpgradeError with what it says."""
        done = subprocess.run(
            ["nice", str(self.program), kind],
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
            raise UpgradeError(f"recorder {kind} ({self.version}): {said[0]}")
        return done.stdout


def build(sources: Path, version: str, folder: Path, is_own: bool = False) -> Recorder:
    """Builds the recorder in ``folder``; minutes for a version that is new to the machine. ``is_own``: the version is
    that of the sources, whose go.mod holds."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(sources, folder)
    if not is_own:
        modules.require(folder, version)
    recorder = Recorder(version, folder / "recorder")
    for _ in range(_MOST_ROUNDS):
        try:
            modules.go("build", "-buildvcs=false", "-gcflags=kemu.dev/...=-e", "-o", "recorder", ".", folder=folder)
            return recorder
        except UpgradeError as error:
            if not mend(folder, str(error), recorder):
                raise
    raise UpgradeError(f"the recorder does not compile with {version}, whatever is left out: {recorder.without}")


def mend(folder: Path, said: str, recorder: Recorder) -> bool:
    """Takes out what the compiler complains of; False: there is nothing that can be taken out."""
    mended = False
    by_file: dict[str, list[tuple[int, str]]] = {}
    for name, number, words in _SAID.findall(said):
        by_file.setdefault(name, []).append((int(number), words))
    for name, complaints in by_file.items():
        file = folder / name
        lines = file.read_text().split("\n")
        wrong: dict[int, str] = {}
        for number, words in complaints:
            lacking, unused = _NO_TYPE.search(words), _UNUSED.search(words)
            if lacking and _drop_root(lines, number - 1, lacking[1]):
                recorder.roots.append(lacking[1])
                mended = True
            elif unused:
                lines[number - 1] = f'\t_ "{unused[1]}"'
                mended = True
            elif (head := _head(lines, number - 1)) is not None:
                wrong.setdefault(head, words)
                mended = True
        for head, words in sorted(wrong.items(), reverse=True):
            recorder.without[f"{name}: {_silence(lines, head, name)}"] = words
        file.write_text("\n".join(lines))
    return mended


def _drop_root(lines: list[str], place: int, name: str) -> bool:
    """A kind that facts are asked of, and that the version lacks: ``v1.Thing{}`` in a list."""
    shorter = re.sub(rf"(?<![\w.]){re.escape(name)}\{{\}},?[ ]?", "", lines[place])
    dropped = shorter != lines[place]
    lines[place] = shorter
    return dropped


def _head(lines: list[str], place: int) -> int | None:
    """Where the function around a line begins; None: there is none, or its head is what is wrong."""
    head = next((number for number in range(place, -1, -1) if lines[number].startswith("func ")), None)
    if head is None or _body(lines, head) > place or "}" in lines[head:place]:
        return None
    return head


def _body(lines: list[str], head: int) -> int:
    """The first line within a function, whose head may have several."""
    return next((number for number in range(head, len(lines)) if lines[number].endswith("{")), len(lines)) + 1


def _silence(lines: list[str], head: int, file: str) -> str:
    """Has a function say that it does not compile. Returns its name."""
    declared = re.match(r"func (?:\([^)]*\) )?(\w+)", lines[head])
    assert declared is not None, lines[head]
    said = f'\tpanic("{declared[1]} in {file} does not compile with this version")'
    lines[_body(lines, head) : lines.index("}", head)] = [said]
    return declared[1]
