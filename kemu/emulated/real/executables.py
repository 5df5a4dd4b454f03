"""Where the programs of Kubernetes are on this machine.

``~/.cache/kemu-tools`` (or ``$XDG_CACHE_HOME/kemu-tools``) holds them, built from their Go modules, as
``kube-scheduler-v1.36.3``; a program may also be on the PATH under its plain name.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from kemu.emulated.objects.facts import KUBERNETES
from kemu.errors import KemuError

VERSIONS = {
    "kube-apiserver": KUBERNETES,
    "kube-scheduler": KUBERNETES,
    "kube-controller-manager": KUBERNETES,
    "kubectl": f"v0{KUBERNETES.removeprefix('v1')}",
    "kwok": "v0.8.0",
    # Without the progress notifications of etcd 3.5.13 and later, kube-apiserver refuses initial events in watches.
    "etcd": "v3.6.12",
}


class ProgramMissing(KemuError):
    """A program is not installed; the text says which one and where it was looked for."""


def cache() -> Path:
    """The folder of those that were built."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kemu-tools"


def find(*names: str) -> dict[str, Path]:
    """By name. Raises ProgramMissing that names all that are missing."""
    found: dict[str, Path] = {}
    missing = []
    for name in names:
        built = cache() / f"{name}-{VERSIONS[name]}"
        path = str(built) if os.access(built, os.X_OK) else shutil.which(name)
        if path is None:
            missing.append(f"{name} {VERSIONS[name]}")
        else:
            found[name] = Path(path)
    if missing:
        raise ProgramMissing(f"this needs {', '.join(missing)}: neither in {cache()} nor on the PATH")
    return found
