"""``kemu doctor``: which of the programs and packages that kemu can use this machine has."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kemu.doors.cli import exits

_NEEDS = {
    "ray": "kemu run --runtime ray, kemu up --runtime ray, kemu explore --ray",
    "otlp": "kemu run --otlp, kemu trace --otlp",
    "live": "kemu run --live, kemu explore --live",
    "sweep": "kemu sweep, kemu compare, kemu results",
    "frames": "to_pandas and to_polars of kemu.results",
    "plots": "kemu plot",
    "perfetto": "kemu trace --perfetto",
    "up": "kemu up, kemu hunt, kemu envtest-assets",
    "cluster": "kemu scheduler, kemu nodes, kemu calibrate, kemu import --kubeconfig",
}
_PROGRAMS = {
    "kubectl": "to talk to kemu up",
    "etcd": "kemu run --store, --runtime real (Debian: etcd-server)",
    "kube-apiserver": "kemu run --runtime real, kemu calibrate",
    "kube-scheduler": "kemu run --runtime real, kemu conformance live",
    "go": "scripts/record, and controllers in Go",
}
_LEAST_MEMORY = 2 << 30
_LEAST_DISK = 1 << 30


class Finding(NamedTuple):
    """One line of the output."""

    what: str
    state: str
    """``ok``, ``missing`` (nothing is wrong, and something cannot be done) or ``bad``."""
    says: str


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="list what is missing on this machine",
        description="Say what this machine has of what kemu can use: Python, memory, disk, packages of the extras, and "
        "programs. Exit code 1 if a run in virtual time would not work.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    found = [*findings()]
    if options.json:
        print(json.dumps([each._asdict() for each in found]))
    else:
        marks = {"ok": "✓", "missing": "-", "bad": "✗"}
        width = max(len(each.what) for each in found)
        for each in found:
            print(f"{marks[each.state]} {each.what:<{width}}  {each.says}")
    return exits.FAILS if any(each.state == "bad" for each in found) else exits.HOLDS


def findings() -> Iterator[Finding]:
    """All findings, in the order of the output."""
    from kemu.emulated.real import executables
    from kemu.runtime import memory

    version = platform.python_version()
    yield Finding("Python", "ok" if platform.python_implementation() == "CPython" else "bad", version)
    cores = os.cpu_count() or 1
    yield Finding("cores", "ok", f"{cores}: --jobs uses all of them")
    free = memory.Machine().free_bytes()
    says = f"{memory.told(free)} are free"
    if free < _LEAST_MEMORY:
        yield Finding("memory", "bad", f"{says}: less than {memory.told(_LEAST_MEMORY)}")
    else:
        yield Finding("memory", "ok", says)
    yield _disk(Path("."), "disk here")
    yield _disk(Path(tempfile.gettempdir()), "disk for temporary files")
    for extra, used_by in _NEEDS.items():
        missing = [name for name in _packages(extra) if not _is_installed(name)]
        if missing:
            yield Finding(extra, "missing", f"{used_by} need pip install 'kemu[{extra}]' ({', '.join(missing)})")
        else:
            yield Finding(extra, "ok", used_by)
    cache = executables.cache()
    for program, used_by in _PROGRAMS.items():
        place = shutil.which(program) or next((str(each) for each in sorted(cache.glob(f"{program}-v*"))), None)
        if place is None:
            yield Finding(program, "missing", f"not found: {used_by}")
        else:
            yield Finding(program, "ok", f"{place}: {used_by}")


def _packages(extra: str) -> Iterator[str]:
    """The packages of an extra of the installed kemu."""
    import importlib.metadata

    for text in importlib.metadata.requires("kemu") or ():
        requirement, _, marker = text.partition(";")
        if re.search(rf"extra == ['\"]{extra}['\"]", marker):
            yield re.split(r"[^A-Za-z0-9._-]", requirement.strip(), maxsplit=1)[0]


def _is_installed(package: str) -> bool:
    import importlib.metadata

    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _disk(folder: Path, what: str) -> Finding:
    from kemu.runtime import memory

    free = shutil.disk_usage(folder).free
    is_writable = os.access(folder, os.W_OK)
    if not is_writable:
        return Finding(what, "bad", f"{folder.resolve()} cannot be written")
    says = f"{memory.told(free)} are free in {folder.resolve()}"
    return Finding(what, "ok" if free >= _LEAST_DISK else "bad", says)
