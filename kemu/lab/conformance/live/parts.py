"""The real parts of a live comparison: etcd, kube-apiserver and kube-scheduler as processes of this machine.

With a kubeconfig of another API server, that of ``kemu up`` for example, only the scheduler is started.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kemu.emulated.apiserver.settings import ApiServers
from kemu.emulated.real import components
from kemu.errors import KemuError
from kemu.lab.conformance.live import shadows
from kemu.runtime.real.programs import Process, Program

TOKEN = "live"
_SETTINGS = ApiServers(authorization=["RBAC"], max_requests_in_flight=2000, max_mutating_requests_in_flight=1000)
_VERBOSE = ("--v=3", "--vmodule=schedule_one=10,schedule_one_podgroup=10,eventhandlers=4")
_SCORES = (b" scored node for pod", b"final score for pod")
"""A line for each plugin and node: heard, but too many to keep."""


class Parts:
    """Processes, ended newest first; none outlives this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """Certificates, logs, configurations, data."""
        self._processes: list[Process] = []

    async def start_cluster(self) -> Path:
        """etcd and kube-apiserver; returns a kubeconfig of an administrator. Raises KemuError."""
        etcd, peers, port = components.free_ports(3)
        tokens = self.folder / "tokens.csv"
        tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        await self._start(components.etcd(self.folder, etcd, peers, fsync=False))
        url = f"http://{components.LOOPBACK}:{etcd}"
        program = components.apiserver(
            self.folder, "kube-apiserver", port, url, tokens, _SETTINGS, TOKEN, audits=False, gates=shadows.GROUP_GATES
        )
        await self._start(program)
        authority = components.authority_of(self.folder, "kube-apiserver")
        server = f"https://{components.LOOPBACK}:{port}"
        return components.kubeconfig(self.folder / "kubeconfig", server, authority, TOKEN)

    async def start_scheduler(
        self,
        kubeconfig: Path,
        profiles: Sequence[Mapping[str, Any]],
        extenders: Sequence[Mapping[str, Any]],
        hear: Callable[[str], object],
    ) -> None:
        """The kube-scheduler; ``hear`` gets its log, line by line."""
        config = {
            "clientConnection": {"qps": 5000, "burst": 10000},
            "percentageOfNodesToScore": 100,
            "profiles": profiles,
            "extenders": extenders,
            "featureGates": shadows.GATES,
        }
        (port,) = components.free_ports(1)
        program = components.scheduler(self.folder, "kube-scheduler", kubeconfig, port, config, hear)
        options = [*program.options, *_VERBOSE]  # the last of a name counts
        await self._start(dataclasses.replace(program, options=options, unkept=_SCORES))

    def check(self) -> None:
        """Raises KemuError when one of them has ended."""
        for process in self._processes:
            if process.ended.done():
                name = process.program.name
                raise KemuError(f"{name} has ended with {process.ended.result()}: {process.program.log}")

    async def stop(self) -> None:
        for process in reversed(self._processes):
            await process.stop()
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)

    async def _start(self, program: Program) -> None:
        process = Process(program)
        self._processes.append(process)
        await process.start()
