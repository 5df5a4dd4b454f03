"""A Ray node of our own, with as few processes as Ray runs with: a GCS, a raylet, and two that stand in for its agents:
one does nothing, the other one forks workers.

``ray.init`` would also start an autoscaler, a dashboard server, a log monitor and two agents: 2.5 s of CPU time and
400 MB that no run needs. Ray has no public option for any of them, so this module relies on ``ray._private.node``.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc

from kemu.runtime import threads
from kemu.runtime.ray import processes
from kemu.runtime.ray.broker import forks, standins, workers

OBJECT_STORE_BYTES = 80 << 20
"""The least that Ray accepts; kemu puts no object there."""

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # it would kill cells when *other* programs fill the machine
    "RAY_enable_metrics_collection": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Ray writes about each death of a cell on standard output.
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
}
"""Environment of a process that speaks with Ray, and of those that it starts."""

LOCAL = {
    # Ray's name for: the address of a node is that of loopback, so that its ports are closed to other machines.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    # A raylet that died is noticed after 5 s, not after 15: its cells have to come back elsewhere.
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_timeout_ms": "3000",
    # Ray has its workers run at niceness 15: beside a busy process, cells would get a thirtieth of a core, and stand.
    "RAY_worker_niceness": "0",
}
"""The same, where all nodes are ours and on this machine."""

_KEEP_S = 24 * 3600
_PRESTART_TIMEOUT_S = 5.0
_IDLE = "ray::IDLE"
"""Name of a worker that waits."""

_BARE = ("-I", "-S")
"""Options of Python for a script that takes nothing from outside its standard library."""
_PORTS = ("DASHBOARD_AGENT_LISTEN", "METRICS_AGENT", "METRICS_EXPORT", "RUNTIME_ENV_AGENT")
"""Which the agents would tell the raylet in files, and the raylet waits for."""
_NO_PORT = -1


class Node:
    """A head node, or with ``head`` one more of that cluster. Its processes end with the *thread* that made it."""

    def __init__(
        self,
        temporary: str,
        *,
        cpus: int,
        resources: Mapping[str, float] | None = None,
        head: str | None = None,
        lean: bool = True,
    ) -> None:
        """``temporary``: a folder for Ray's files. ``lean``: without the processes that can be left out."""
        from ray._private.node import Node as RayNode
        from ray._private.parameter import RayParams

        class LeanNode(RayNode):  # type: ignore[misc]
            def start_api_server(self, *_: Any, **__: Any) -> None:
                self._webui_url = ""

            def start_monitor(self) -> None:
                pass

            def start_log_monitor(self) -> None:
                pass

        parameters = RayParams(
            temp_dir=temporary,
            num_cpus=cpus,
            num_gpus=0,
            resources=dict(resources or {}),
            object_store_memory=OBJECT_STORE_BYTES,
            include_dashboard=False,
            gcs_address=head,
            worker_path=_script(workers) if lean else None,
        )
        with _stand_ins(cpus) if lean else contextlib.nullcontext():
            self._node: Any = (LeanNode if lean else RayNode)(parameters, head=head is None, shutdown_at_exit=False)
        self.address: str = self._node.address

    def dead(self) -> str:
        """Which of its processes has died, in words; empty: none."""
        for kind, process in self._node.dead_processes():
            return f"the {_NAMES.get(kind, kind)} of Ray (process {process.pid}) {_ending(process.returncode)}"
        return ""

    def prestart(self, workers: int, job: bytes) -> None:
        """Have so many more processes ready that no task has run in: Ray makes actors of no others."""
        from ray.core.generated import node_manager_pb2, node_manager_pb2_grpc

        messages: Any = node_manager_pb2
        request = messages.PrestartWorkersRequest(
            language="PYTHON", job_id=job, num_workers=workers, keep_alive_duration_secs=_KEEP_S
        )
        token = os.environ.get("RAY_AUTH_TOKEN", "")
        target = f"{self._node.node_ip_address}:{self._node.node_manager_port}"
        with contextlib.closing(grpc.insecure_channel(target)) as channel:
            stub: Any = node_manager_pb2_grpc.NodeManagerServiceStub(channel)  # type: ignore[no-untyped-call]
            stub.PrestartWorkers(request, metadata=(("authorization", f"Bearer {token}"),), timeout=_PRESTART_TIMEOUT_S)

    def idle(self) -> int:
        """How many processes wait for work."""
        return sum(processes.name(each) == _IDLE for each in processes.descendants(self.pid("raylet")))

    def pid(self, kind: str) -> int:
        """Pid of its ``gcs_server`` or ``raylet``."""
        return int(self._node.all_processes[kind][0].process.pid)


_NAMES = {"gcs_server": "GCS", "raylet": "raylet"}


def _ending(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


_starting = threading.Lock()


@contextlib.contextmanager
def _stand_ins(cpus: int) -> Iterator[None]:
    """Raylets that are started meanwhile get stand-ins for their agents, and start as many workers at once."""
    from ray import _raylet as found
    from ray._private import services

    _raylet: Any = found
    start = services.start_ray_process

    def start_with_stand_ins(command: list[str], *arguments: Any, **options: Any) -> Any:
        given = dict(word.partition("=")[::2] for word in command if word.startswith("--"))
        if "--raylet_socket_name" in given:
            for name in _PORTS:
                port = getattr(_raylet, f"{name}_PORT_NAME", None)  # not every Ray has these files
                if port is not None:
                    _raylet.persist_port(given["--session_dir"], given["--node_id"], port, _NO_PORT)
            command = [_stood_in(word, cpus, given["--raylet_socket_name"]) for word in command]
        return start(command, *arguments, **options)

    with _starting:
        services.start_ray_process = start_with_stand_ins
        try:
            yield
        finally:
            services.start_ray_process = start


def _script(module: ModuleType) -> str:
    return str(Path(str(module.__file__)).resolve())


def _stood_in(word: str, cpus: int, raylet: str) -> str:
    name, _, value = word.partition("=")
    match name:
        case "--dashboard_agent_command":
            value = subprocess.list2cmdline([sys.executable, *_BARE, _script(standins)])
        case "--runtime_env_agent_command":
            value = subprocess.list2cmdline([sys.executable, _script(forks), raylet])
        case "--python_worker_command":
            script = subprocess.list2cmdline([_script(workers)])
            value = value.replace(script, f"{subprocess.list2cmdline(_BARE)} {script}")
        case "--maximum_startup_concurrency":  # Ray's is the number of cores: it starts no more workers beforehand
            value = str(cpus)
        case _:
            return word
    return f"{name}={value}"


def environment(*, local: bool) -> dict[str, str]:
    """What to start a process with that speaks with Ray: what the user has set counts more."""
    return {**QUIET, **(LOCAL if local else {}), **threads.ONE, **os.environ}
