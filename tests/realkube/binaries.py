"""Where the real parts of Kubernetes are.

A tool beside the project (``../shared/tools/kube``) builds them from their Go modules into a cache; what is built
already is taken from there without the tool.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kemu.emulated.real.executables import VERSIONS, cache

TOOL = Path(__file__).resolve().parents[2].parent / "shared" / "tools" / "kube"
BUILD_S = 900.0


class Missing(Exception):
    """A part is neither built nor can it be built here; the text says which."""


def find(name: str, build: bool = False) -> Path:
    """The executable ``name``; with ``build``, the tool may build it, which takes minutes."""
    version = VERSIONS[name]
    cached = cache() / f"{name}-{version}"
    if os.access(cached, os.X_OK):
        return cached
    if not build:
        raise Missing(f"not beside the project: {name} {version} is not in {cached.parent}")
    if not TOOL.exists():
        raise Missing(f"not beside the project: {name} {version} is not in {cached.parent}, nor is there {TOOL}")
    done = subprocess.run([TOOL, "build", name], capture_output=True, text=True, check=False, timeout=BUILD_S)
    if done.returncode:
        raise Missing(f"{name} {version} could not be built: {done.stderr[-2000:]}")
    return Path(done.stdout.strip())


def missing(*names: str) -> str:
    """Why a test that needs ``names`` cannot run here; empty if it can."""
    reasons = []
    for name in names:
        try:
            find(name)
        except Missing as why:
            reasons.append(str(why))
    return "; ".join(reasons)


def require(*names: str) -> None:
    """Skip the calling test if one of ``names`` is missing (``KEMU_STRICT`` forgives what is built aside)."""
    why = missing(*names)
    if why:
        pytest.skip(why)
