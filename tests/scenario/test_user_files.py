"""Files that users name: what is no regular file, is too large, or stands for too much, is refused at once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli.commands.clusters import scheduler
from kemu.emulated.bridge import connections
from kemu.emulated.objects.conversion import user_files
from kemu.errors import KemuError, ScenarioError
from kemu.lab.scenario.loading import loader
from kemu.lab.sweep.experiments import loader as experiments
from kemu.lab.up import remotes
from kemu.lab.up.chaos import scripts

HEAD = "apiVersion: kemu.dev/v1\nkind: Scenario\nspec:\n  nodes: [{name: n}]\n"


def _manifests(file: Path, folder: Path) -> Any:
    (folder / "it.yaml").write_text(f"{HEAD}  manifests: [{{file: {file}}}]\n")
    return loader.load(folder / "it.yaml")


def _kubelet(file: Path, folder: Path) -> Any:
    (folder / "it.yaml").write_text(HEAD.replace("{name: n}", f"{{name: n, kubeletFile: {file}}}"))
    return loader.load(folder / "it.yaml")


READERS: list[Callable[[Path, Path], Any]] = [
    lambda file, folder: loader.load(file),
    _manifests,
    _kubelet,
    lambda file, folder: experiments.load(file, None),
    lambda file, folder: scripts.load(file),
    lambda file, folder: remotes.Remote(file),
    lambda file, folder: scheduler._document(file),
    lambda file, folder: asyncio.run(connections.Connection(connections.Settings(kubeconfig=str(file))).open()),
]


def complaint(reader: Callable[[Path, Path], Any], file: Path, folder: Path) -> str:
    begun = time.monotonic()
    with pytest.raises(KemuError) as caught:
        reader(file, folder)
    assert time.monotonic() - begun < 60  # it does not wait for a file that never ends
    error = caught.value
    return "\n".join(map(str, error.problems)) if isinstance(error, ScenarioError) else str(error)


@pytest.mark.parametrize("reader", READERS)
def test_only_regular_files_of_a_bounded_size_are_read(
    reader: Callable[[Path, Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "a device, not a regular file" in complaint(reader, Path("/dev/zero"), tmp_path)
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    assert "a pipe, not a regular file" in complaint(reader, pipe, tmp_path)
    assert "No such file" in complaint(reader, tmp_path / "nothing.yaml", tmp_path)
    large = tmp_path / "large.yaml"
    with large.open("wb") as file:
        file.truncate(200 << 20)
    assert f"larger than {user_files.MAX_BYTES >> 20} MiB" in complaint(reader, large, tmp_path)


def _bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize("reader", READERS)
def test_what_stands_for_too_much_is_refused_before_it_is_read(
    reader: Callable[[Path, Path], Any], tmp_path: Path
) -> None:
    file = tmp_path / "bomb.yaml"
    file.write_text(_bomb(9))
    assert "excessive aliasing" in complaint(reader, file, tmp_path)
    file.write_text(f"x: {'[' * 5000}{']' * 5000}")
    told = complaint(reader, file, tmp_path)
    assert "deep" in told or "depth" in told


def test_a_bomb_in_an_annotation_is_refused(tmp_path: Path) -> None:
    text = _bomb(9).replace("\n", "\\n").replace("a0:", "memory: &a0 1Gi\\na0:", 1).replace("&a0 [", "&b [", 1)
    pod = f'{{apiVersion: v1, kind: Pod, metadata: {{name: p, annotations: {{kemu.dev/usage: "{text}"}}}}, '
    with pytest.raises(ScenarioError):
        loader.loads(f"{HEAD}  manifests: [{pod}spec: {{containers: [{{name: m}}]}}}}]\n")


def test_aliases_as_people_use_them_stay(tmp_path: Path) -> None:
    first = "&s {containers: [{name: m}]}"
    pods = "".join(
        f"  - {{apiVersion: v1, kind: Pod, metadata: {{name: p{n}}}, spec: {'*s' if n else first}}}\n"
        for n in range(3000)
    )
    assert len(loader.loads(f"{HEAD}  manifests:\n{pods}").setup) == 3000


def test_standard_input_is_bounded() -> None:
    command = [sys.executable, "-m", "kemu.doors.cli.main", "run", "-"]
    with open("/dev/zero") as zeros:
        done = subprocess.run(command, stdin=zeros, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "larger than" in done.stderr
