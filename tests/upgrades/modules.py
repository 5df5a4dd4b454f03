"""Kubernetes' Go modules of one version, by the ordinary client of Go's modules."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

KUBERNETES = "k8s.io/kubernetes"
_VERSION = re.compile(r"v1\.\d+\.\d+(-[\w.]+)?")


class UpgradeError(Exception):
    """What cannot be had or made, and why."""


def checked(version: str) -> str:
    """``version`` as it was given; raises UpgradeError for what is no version of Kubernetes."""
    if not _VERSION.fullmatch(version):
        raise UpgradeError(f"{version!r} is no version of Kubernetes: v1.37.0, for example")
    return version


def staging(version: str) -> str:
    """``v0.37.0`` of ``v1.37.0``: how the modules are numbered that Kubernetes publishes apart."""
    return f"v0{version.removeprefix('v1')}"


def minor(version: str) -> str:
    """``1.37`` of ``v1.37.0``."""
    return version.removeprefix("v").rpartition(".")[0]


def go(*arguments: str, folder: Path | None = None, timeout_s: float = 3600) -> str:
    """What the go command prints. Raises UpgradeError with what it says on standard error."""
    path = f"{os.environ.get('PATH', '')}:/usr/local/go/bin"
    program = shutil.which("go", path=path)
    if program is None:
        raise UpgradeError("the Go toolchain is needed, which is not on the PATH")
    done = subprocess.run(
        ["nice", program, *arguments],
        cwd=folder,
        env={**os.environ, "PATH": path, "GOWORK": "off"},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode:
        raise UpgradeError(f"go {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def fetched(path: str, version: str) -> Path:
    """The folder of a module in the cache of Go's modules, read-only."""
    told: dict[str, Any] = json.loads(go("mod", "download", "-json", f"{path}@{version}", folder=Path("/")))
    return Path(told["Dir"])


def kubernetes(version: str) -> Path:
    return fetched(KUBERNETES, version)


def published(name: str, version: str) -> Path:
    """A module of its own, as ``api`` or ``apimachinery``."""
    return fetched(f"k8s.io/{name}", staging(version))


def required(folder: Path) -> dict[str, Any]:
    """The go.mod of a folder."""
    document: dict[str, Any] = json.loads(go("mod", "edit", "-json", folder=folder))
    return document


def require(recorder: Path, version: str) -> None:
    """Writes the recorder's go.mod anew: all that it imports directly, in the versions that Kubernetes has."""
    theirs = required(kubernetes(version))
    staged = [one["Old"]["Path"] for one in theirs["Replace"] if one["New"]["Path"].startswith("./staging/")]
    versions = {one["Path"]: one["Version"] for one in theirs["Require"]}
    versions |= {KUBERNETES: version} | dict.fromkeys(staged, staging(version))
    direct = [one["Path"] for one in required(recorder)["Require"] if not one.get("Indirect")]
    unknown = [path for path in direct if path not in versions]
    lines = [f"module kemu.dev/recorder\n\ngo {theirs['Go']}\n\nrequire ("]
    lines += [f"\t{path} {versions[path]}" for path in direct if path not in unknown]
    lines += [")\n", *(f"replace {path} => {path} {staging(version)}\n" for path in sorted(staged))]
    (recorder / "go.mod").write_text("\n".join(lines))
    (recorder / "go.sum").unlink(missing_ok=True)
    go("mod", "tidy", "-e", folder=recorder)
