"""The Ray cluster that stands between runs: ``kemu ray up``, ``down`` and ``status``.

A file in the user's state folder says where its broker listens. A run takes the cluster only if it belongs to the same
user, lives, and would run the same kemu: the same Python, the same Ray, the same files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import kemu
from kemu.errors import InfrastructureError, KemuError
from kemu.runtime.ray import frames, processes
from kemu.runtime.ray.broker import server
from kemu.runtime.ray.driver import brokers

_ANSWER_S = 5.0
_START_S = 120.0
_POLL_S = 0.05
_GRACE_S = 10.0


@dataclass(frozen=True)
class Standing:
    """What the file says."""

    pid: int
    """Pid of the broker."""
    started: float
    """When that process was started."""
    temporary: str
    """Its folder, with its socket and Ray's files."""
    workers: int
    """Processes that wait for cells."""
    address: str
    """Address of Ray's GCS."""
    runs: dict[str, Any]
    """What its cells would run."""

    @property
    def process(self) -> Any | None:
        """None: it is gone."""
        found = processes.of(self.pid)
        same = found is not None and abs(found.create_time() - self.started) < 1 and processes.runs(found)
        return found if same else None

    def open(self) -> socket.socket:
        """Raises OSError. Folder and socket are this user's: no other user may listen there."""
        if os.stat(self.temporary).st_uid != os.getuid():
            raise PermissionError(f"{self.temporary} belongs to somebody else")
        found = socket.socket(socket.AF_UNIX)
        try:
            found.settimeout(_ANSWER_S)
            found.connect(os.path.join(self.temporary, server.SOCKET))
            found.settimeout(None)
        except OSError:
            found.close()
            raise
        return found


def state_file() -> Path:
    root = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(root) / "kemu" / "ray-cluster.json"


def read() -> Standing | None:
    """None: there is no file, or one that this version of kemu does not understand."""
    try:
        with state_file().open() as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            return Standing(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None


def connect() -> brokers.Connection | None:
    """To the standing cluster. None: there is none that a run of this process could use."""
    found = read()
    if found is None or found.runs != what_runs() or found.process is None:
        return None
    try:
        connection = brokers.Connection(found.open(), found.temporary, None)
    except OSError:
        return None
    try:
        connection.call("start").result(_ANSWER_S)
    except (frames.ClusterLost, frames.RayFailed, FutureTimeout):
        connection.close()
        return None
    return connection


def what_runs() -> dict[str, Any]:
    """What the cells of this process would run. A cluster whose cells run something else is of no use to it."""
    package = Path(kemu.__file__).parent
    newest = max(path.stat().st_mtime_ns for path in package.rglob("*.py"))
    return {"python": sys.executable, "ray": metadata.version("ray"), "kemu": str(package), "changed": newest}


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One command at a time changes the file."""
    folder = state_file().parent
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def up(workers: int) -> tuple[Standing, bool]:
    """Returns the cluster, and whether it is new. Raises InfrastructureError, and KemuError where there is another."""
    with _alone():
        found = read()
        if found is not None and found.process is not None:
            if found.runs == what_runs() and found.workers == workers:
                return found, False
            raise KemuError(f"another one stands: {difference(found, workers)}: end it first (kemu ray down)")
        if found is not None:
            _end(found)
        temporary = brokers.temporary_folder()
        process = brokers.spawn(temporary, None, workers, "--listen")
        try:
            made = _when_started(process, temporary, workers)
        except BaseException:
            process.terminate()
            _end_all(process.pid, temporary)
            raise
        file = state_file()
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(dataclasses.asdict(made), indent=2) + "\n")
        draft.replace(file)
        return made, True


def difference(found: Standing, workers: int | None = None) -> str:
    """Why a run cannot use it, in words."""
    mine = what_runs()
    names = {"python": "Python", "ray": "version of Ray", "kemu": "copy of kemu"}
    for key, name in names.items():
        if found.runs.get(key) != mine[key]:
            return f"it runs another {name} ({found.runs.get(key)})"
    if found.runs != mine:
        return "files of kemu have changed since it was started"
    return f"it has {found.workers} workers" if workers not in (None, found.workers) else ""


def _when_started(process: subprocess.Popen[bytes], temporary: str, workers: int) -> Standing:
    started = processes.psutil().Process(process.pid).create_time()
    draft = Standing(process.pid, started, temporary, workers, "", what_runs())
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise InfrastructureError("cannot start Ray: the process that was to start it has ended")
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            connection = brokers.Connection(draft.open(), temporary, None)
            try:
                answer = connection.call("start").result(max(0.0, deadline - time.monotonic()))
                return dataclasses.replace(draft, address=answer["address"])
            except (frames.ClusterLost, frames.RayFailed) as error:
                raise InfrastructureError(f"cannot start Ray: {error}") from error
            except FutureTimeout:
                break
            finally:
                connection.close()
        time.sleep(_POLL_S)
    raise InfrastructureError(f"cannot start Ray within {_START_S:.0f} s")


def down() -> tuple[bool, list[str]]:
    """Returns whether there was one, and what is left of it all the same."""
    with _alone():
        found = read()
        if found is None:
            state_file().unlink(missing_ok=True)
            return False, []
        left = _end(found)
        state_file().unlink(missing_ok=True)
        return True, left


def _end(found: Standing) -> list[str]:
    process = found.process
    if process is not None:
        process.terminate()
    return _end_all(process.pid if process is not None else 0, found.temporary)


def _end_all(pid: int, temporary: str) -> list[str]:
    broker = processes.of(pid) if pid else None
    started = processes.descendants(pid) if pid else []
    left = processes.end([broker] if broker is not None else [], grace_s=_GRACE_S)
    left += processes.end(started, grace_s=0.0)
    if not Path(temporary).name.startswith(brokers.PREFIX):
        return []  # not a folder that kemu has made
    left += processes.end(processes.using(temporary), grace_s=0.0)
    found = [f"process {each.pid} ({processes.name(each)})" for each in left]
    return found if processes.remove(temporary) else [*found, f"folder {temporary}"]


@dataclass(frozen=True)
class Status:
    cluster: Standing | None
    """That of the file."""
    lives: bool
    unfit: str
    """Why runs of this process do not use it; empty: they do."""
    processes: int
    memory_bytes: int
    """What its processes take, shared pages counted once."""
    leftovers: list[str]
    """Folders of brokers that have ended without removing them."""


def status() -> Status:
    found = read()
    process = found.process if found is not None else None
    members = [process, *processes.descendants(process.pid)] if process is not None else []
    unfit = ""
    if found is not None:
        unfit = difference(found) if process is not None else "its process is gone"
        if not unfit:
            connection = connect()
            unfit = "it does not answer" if connection is None else ""
            if connection is not None:
                connection.close()
    memory = sum(_proportional_bytes(each) for each in members)
    own = found.temporary if found is not None else ""
    return Status(found, process is not None, unfit, len(members), memory, _leftovers(own))


def _proportional_bytes(process: Any) -> int:
    with contextlib.suppress(processes.psutil().Error):
        return int(process.memory_full_info().pss)
    return 0


def _leftovers(own: str) -> list[str]:
    root = Path(brokers.temporary_root())
    mine = [path for path in root.glob(f"{brokers.PREFIX}*") if path.stat().st_uid == os.getuid()]
    return [str(path) for path in sorted(mine) if str(path) != own and not processes.using(str(path))]
