"""Starts Ray for one run, or joins an existing cluster, and leaves no process behind.

The only module that calls ``ray.init`` and ``ray.shutdown``. Ray is imported when a cluster is entered, because that
takes half a second.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kemu.errors import SimulationError

_OBJECT_STORE_BYTES = 80 << 20
"""The least that Ray accepts; kemu puts no object there."""

_SEVERAL_MACHINES = "ENABLE_RAY_CLUSTER"
"""Ray's constant: nodes of a cluster may be on several machines."""

_LONGEST_TEMPORARY_PATH = 40
"""Unix sockets allow 107 bytes, of which Ray adds about 65."""

_STARTS = 3
"""How often a local Ray is started before giving up: it waits for its own processes for a fixed time, which on a busy
machine may be too short."""

_GRACE_S = 3.0
_GRACE_OF_KILLED_S = 30.0

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # it would kill cells when *other* programs fill the machine
    "RAY_enable_metrics_collection": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Ray writes about each death of a cell on the driver's standard output, where programs read ours.
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}


class RayCluster:
    """Ray, connected; as a context manager it is left, or stopped, at the end.

    ``address``: a cluster to join (``auto``, ``host:port``). None: what this process is connected to already, or what
    the environment says (``RAY_ADDRESS``), or a new local one. Only a local one that was started here is stopped.
    """

    def __init__(self, address: str | None = None, *, workers: int = 3) -> None:
        """``workers``: processes that Ray starts at once and keeps ready for actors. Raises SimulationError."""
        self._temporary: str | None = None
        self._processes: list[Any] = []
        # Ray reads these when it is imported or started, and hands them down to its processes.
        with _environment(_QUIET):
            import ray

            logging.getLogger("ray").setLevel(logging.ERROR)
            self.ray: Any = ray
            self.owned = not ray.is_initialized()
            if self.owned:
                address = address or os.environ.get("RAY_ADDRESS")
                if address == "local":
                    address = None
                for attempt in range(_STARTS):
                    self.owned = True
                    try:
                        self._connect(ray, address, workers)
                        break
                    except BaseException as error:
                        self.stop()
                        if not isinstance(error, Exception):
                            raise
                        if address or attempt == _STARTS - 1:
                            where = f"cannot join the Ray cluster at {address}" if address else "cannot start Ray"
                            raise SimulationError(f"{where}: {error}") from error

    def _connect(self, ray: Any, address: str | None, workers: int) -> None:
        common: dict[str, Any] = {
            "configure_logging": False,
            "log_to_driver": False,
            # What is importable here must be so in the cells.
            "job_config": ray.job_config.JobConfig(_py_driver_sys_path=python_path()),
        }
        if address is not None:
            ray.init(address=address, **common)
            return
        # Ray guards a cluster with a token, and would leave one in the home directory: ours lives as long as we do.
        # It stays the same in one process, as Ray remembers the first.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        self._temporary = tempfile.mkdtemp(prefix="kemu-ray-", dir=_temporary_root())
        before = {process.pid for process in _descendants()}
        try:
            with _on_loopback(ray):
                ray.init(
                    address="local",
                    num_cpus=workers,
                    num_gpus=0,
                    include_dashboard=False,
                    object_store_memory=_OBJECT_STORE_BYTES,
                    _temp_dir=self._temporary,
                    **common,
                )
        finally:
            self._processes = [process for process in _descendants() if process.pid not in before]

    def adopt(self, pid: int) -> None:
        """Add a process of this machine that Ray started for the run: ``stop`` ends it too."""
        import psutil  # type: ignore[import-untyped]

        with contextlib.suppress(psutil.NoSuchProcess):
            self._processes.append(psutil.Process(pid))

    def has_ended(self, pid: int) -> bool:
        """Whether an adopted process has ended."""
        for process in self._processes:
            if process.pid == pid:
                return not _runs(process)
        return True

    def pids(self) -> list[int]:
        """Of all processes that ``stop`` ends."""
        self._refresh()
        return [process.pid for process in self._processes]

    def _refresh(self) -> None:
        import psutil  # type: ignore[import-untyped]

        known = {process.pid for process in self._processes}
        for process in list(self._processes):
            with contextlib.suppress(psutil.Error):
                for child in process.children(recursive=True):
                    if child.pid not in known:
                        known.add(child.pid)
                        self._processes.append(child)
        self._processes = [process for process in self._processes if process.is_running()]

    def nodes(self) -> list[dict[str, Any]]:
        """Those that live, as ``ray.nodes()`` describes them."""
        return [node for node in self.ray.nodes() if node["Alive"]]

    def offers(self, resource: str) -> bool:
        return any(resource in node["Resources"] for node in self.nodes())

    def spans_machines(self) -> bool:
        return len({node["NodeManagerAddress"] for node in self.nodes()}) > 1

    def stop(self) -> None:
        """Leave Ray, and wait until every process that was started here is gone, by force if need be.

        Actors must have been killed before (``ray.kill``), or a cluster that goes on would start them again.
        """
        import psutil  # type: ignore[import-untyped]

        self._refresh()
        if self.owned:
            self.owned = False
            self.ray.shutdown()
        # psutil knows a process by its pid and start time: a pid that was given anew is never hit.
        _, alive = psutil.wait_procs(self._processes, timeout=_GRACE_S)
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        deadline = time.monotonic() + _GRACE_OF_KILLED_S
        while any(_runs(process) for process in alive) and time.monotonic() < deadline:
            time.sleep(0.02)
        self._processes = []
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def __enter__(self) -> RayCluster:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def python_path() -> list[str]:
    """Directories from which this process imports, in a form that another one can use."""
    return [str(Path(entry or ".").resolve()) for entry in sys.path]


def _temporary_root() -> str:
    root = tempfile.gettempdir()
    return root if len(root) + len("/kemu-ray-xxxxxxxx") <= _LONGEST_TEMPORARY_PATH else "/tmp"


def _runs(process: Any) -> bool:
    """Whether a process runs; a zombie does not."""
    import psutil  # type: ignore[import-untyped]

    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _descendants() -> list[Any]:
    import psutil  # type: ignore[import-untyped]

    found: list[Any] = psutil.Process().children(recursive=True)
    return found


@contextlib.contextmanager
def _on_loopback(ray: Any) -> Iterator[None]:
    """Ray's ports listen on loopback. Elsewhere than on Linux they always do, as its clusters have one machine there;
    here they would listen on all interfaces, and asked for 127.0.0.1, Ray looks for another address."""
    constants = ray._private.ray_constants
    before = getattr(constants, _SEVERAL_MACHINES, None)
    setattr(constants, _SEVERAL_MACHINES, False)
    try:
        yield
    finally:
        setattr(constants, _SEVERAL_MACHINES, before)


@contextlib.contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Set environment variables that are not set, and unset them at the end."""
    added = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
