"""Writes the folder that ``KUBEBUILDER_ASSETS`` names."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from kemu.errors import KemuError

PROGRAMS = ("etcd", "kube-apiserver", "kubectl")
_MARK = "# written by kemu envtest-assets"


def write(folder: Path) -> None:
    """Scripts of an earlier time are replaced. Raises KemuError for a program of somebody else's."""
    folder = folder.absolute()
    for name in PROGRAMS:
        file = folder / name
        if file.is_symlink() or (file.exists() and _MARK.encode() not in file.read_bytes()[:200]):
            raise KemuError(f"{file} is none of kemu's scripts: name another folder, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        file = folder / name
        file.write_text(_script(name, folder))
        file.chmod(0o755)


def _script(name: str, folder: Path) -> str:
    called = [sys.executable, "-m", "kemu.lab.up.envtest", name]
    if name == "kubectl":
        called.append(str(folder.resolve()))
    # Of the folder that it is started in Python imports nothing: tests run where their sources are.
    return f'#!/bin/sh\n{_MARK}\nPYTHONSAFEPATH=1 exec {shlex.join(called)} "$@"\n'
