"""The recorder, built with another version of Kubernetes.

Kubernetes' packages change their functions from version to version, so some files of the recorder may not compile. What
they ask cannot be asked then; everything else can. What is left out is said, with the compiler's words: it is to be
mended in ``tests/conformance/recorder``.
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
_NO_NAME = re.compile(r"undefined: (\w+)$")


@dataclass
class Recorder:
    version: str
    program: Path
    without: dict[str, str] = field(default_factory=dict)
    """Files that do not compile, with what the compiler says first."""
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
    stubs: dict[str, str] = {}
    for _ in range(50):
        try:
            modules.go("build", "-buildvcs=false", "-gcflags=kemu.dev/...=-e", "-o", "recorder", ".", folder=folder)
            return recorder
        except UpgradeError as error:
            if is_own or not _mend(folder, str(error), recorder, stubs):
                raise
    raise UpgradeError(f"the recorder does not compile with {version}, whatever is left out: {recorder.without}")


def _mend(folder: Path, said: str, recorder: Recorder, stubs: dict[str, str]) -> bool:
    """Takes out what the compiler complains of; False: there is nothing to take out."""
    wrong: dict[str, str] = {}
    names: set[str] = set()
    for file, number, words in _SAID.findall(said):
        if words == "too many errors":
            continue
        if (lacking := _NO_TYPE.search(words)) and _drop_root(folder / file, lacking[1]):
            recorder.roots.append(lacking[1])
        elif (lacking := _NO_NAME.search(words)) and file == "main.go":
            names.add(lacking[1])
        elif file != "main.go":
            wrong.setdefault(file, f"{number}: {words}")
    for name in sorted(names):
        stub = _stub(name, folder)
        if stub is None:
            return False
        stubs[name] = stub
    for file, words in wrong.items():
        recorder.without[file] = words
        (folder / file).rename(folder / f"{file}.out")
    if stubs:
        head = 'package main\n\nimport (\n\t"encoding/json"\n\t"errors"\n\t"io"\n\t"testing"\n)\n\n'
        keep = "var (\n\t_ json.RawMessage\n\t_ io.Writer\n\t_ *testing.T\n)\n\n"
        (folder / "left_out.go").write_text(head + keep + "\n\n".join(stubs.values()) + "\n")
    return bool(wrong or names or recorder.roots)


def _drop_root(file: Path, name: str) -> bool:
    """A kind that facts are asked of, and that the version lacks: ``apps1.Thing{}`` in a list."""
    text = file.read_text()
    shorter = re.sub(rf"(?<![\w.]){re.escape(name)}\{{\}},?[ ]?", "", text)
    if shorter == text:
        return name not in text  # an earlier complaint of the same has dropped it
    file.write_text(shorter)
    return True


def _stub(name: str, folder: Path) -> str | None:
    """A function that main.go calls and whose file was left out: it says so."""
    for file in sorted(folder.glob("*.go.out")):
        declared = re.search(rf"^func {name}\(.*\{{$", file.read_text(), re.MULTILINE)
        if declared:
            told = f'errors.New("{file.name.removesuffix(".out")} does not compile with this version")'
            result = f"nil, {told}" if declared[0].endswith("(any, error) {") else told
            return f"{declared[0]}\n\treturn {result}\n}}"
    return None
