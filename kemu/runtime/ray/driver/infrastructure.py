"""The processes below the cells: raylets and the GCS of Ray, and a real etcd.

Faults end and stop those of a Ray that was started for the run; what else does is found out by a look every half
second. Only processes of this machine count, known by their pid and start time, so that a pid that was given anew is
never hit. Of a Ray cluster that the run has joined, the GCS tells which raylets live. Neighbours: ``clusters`` is Ray,
``fleets`` are the cells, ``runtime`` tells faults apart.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from kemu.errors import InfrastructureError, SimulationError
from kemu.runtime.ray import processes
from kemu.runtime.runlog.events import Event, ProcessContinued, ProcessDied, ProcessStarted, ProcessStopped

LOOK_S = 0.5
ASK_S = 1.0
"""Between questions to a GCS; itself it notices after some seconds that a raylet is gone."""
RAYLET = "raylet/"
GCS = "gcs"
ETCD = "etcd"

_PROGRAMS = {"raylet": RAYLET, "gcs_server": GCS}

Log = Callable[[str, Event], None]
"""Takes the name of a process."""


class Infrastructure:
    def __init__(self, log: Log, etcd: str = "") -> None:
        """``etcd``: ``host:port`` of the one that takes the place of the store; empty: none does."""
        self._log = log
        self._etcd = etcd
        self._processes: dict[str, Any] = {}
        """By name."""
        self._owned = False
        self._ends_by: dict[str, str] = {}
        """What of the run has ended, or stopped, which process."""
        self._dead: dict[str, None] = {}
        self._stopped: dict[str, None] = {}

    def know(self, own: Sequence[Any]) -> None:
        """``own``: psutil's, of a Ray that was started for the run; empty: there is none."""
        psutil = processes.psutil()
        self._owned = bool(own)
        raylets = 0
        for process in own:
            with contextlib.suppress(psutil.Error):
                name = _PROGRAMS.get(process.name())
                if name == RAYLET:
                    name, raylets = f"{RAYLET}{raylets}", raylets + 1
                if name is not None:
                    self._processes[name] = process
        self._find_etcd()

    def _find_etcd(self) -> None:
        """The process that listens there, if it is of this machine and called etcd."""
        psutil = processes.psutil()
        if not self._etcd:
            return
        port = int(self._etcd.rpartition(":")[2])
        with contextlib.suppress(psutil.Error):
            for found in psutil.net_connections("tcp"):
                if found.status == psutil.CONN_LISTEN and found.laddr.port == port and found.pid is not None:
                    process = psutil.Process(found.pid)
                    if process.name() == ETCD:
                        self._processes[ETCD] = process

    def names(self) -> list[str]:
        return list(self._processes)

    def refuse(self, pattern: str) -> SimulationError:
        """Why no process of that name can be reached."""
        if pattern == ETCD:
            return SimulationError(
                f"{pattern} cannot be reached: store.etcd names no process called etcd on the driver's machine"
            )
        if not self._owned:
            return SimulationError(
                f"{pattern} is of a Ray cluster that was not started for this run: only its owner may end its processes"
            )
        return SimulationError(f"there is no process {pattern}; there are {', '.join(self.names())} and the cells")

    def kill(self, name: str, by: str, *, whole_node: bool = False) -> None:
        """``whole_node``: with all processes that it has started, cells too."""
        psutil = processes.psutil()
        process = self._processes[name]
        # With its raylet or GCS the run may end before the next look.
        self._dead[name] = None
        self._stopped.pop(name, None)
        self._log(name, ProcessDied(pid=process.pid, by=by))
        with contextlib.suppress(psutil.NoSuchProcess):
            command, folder, environment = process.cmdline(), process.cwd(), process.environ()
            victims = [process, *(process.children(recursive=True) if whole_node else ())]
            for victim in victims:
                with contextlib.suppress(psutil.NoSuchProcess):
                    victim.send_signal(signal.SIGKILL)
            if name == ETCD:
                self._restart = (command, folder, environment)

    def children(self, name: str) -> list[int]:
        """Pids of the processes that this one has started, directly or not."""
        return [child.pid for child in processes.descendants(self._processes[name].pid)]

    def start_etcd_again(self) -> None:
        """The one that was killed, by its own command; unless that has been done already."""
        before = self._processes.get(ETCD)
        self._find_etcd()
        if self._processes.get(ETCD) is not before:
            return
        command, folder, environment = self._restart
        null = subprocess.DEVNULL
        subprocess.Popen(
            command, cwd=folder, env=environment, stdin=null, stdout=null, stderr=null, start_new_session=True
        )

    def stop(self, name: str, by: str) -> None:
        self._ends_by[name] = by
        self._signal(name, signal.SIGSTOP)

    def let_go(self, name: str) -> None:
        self._signal(name, signal.SIGCONT)

    def _signal(self, name: str, number: signal.Signals) -> None:
        psutil = processes.psutil()
        with contextlib.suppress(psutil.NoSuchProcess):
            self._processes[name].send_signal(number)

    async def watch(self) -> None:
        """Tell what becomes of them, for as long as the run lasts."""
        while True:
            await asyncio.sleep(LOOK_S)
            if ETCD in self._dead:
                self._find_etcd()
            for name, process in list(self._processes.items()):
                self._look(name, process)

    def _look(self, name: str, process: Any) -> None:
        psutil = processes.psutil()
        try:
            status = process.status() if process.is_running() else psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            status = psutil.STATUS_ZOMBIE
        if status == psutil.STATUS_ZOMBIE:
            if name not in self._dead:
                self._dead[name] = None
                self._stopped.pop(name, None)
                self._log(name, ProcessDied(pid=process.pid, by=self._ends_by.pop(name, "")))
            return
        if name in self._dead:
            del self._dead[name]
            self._log(name, ProcessStarted(pid=process.pid))
        if status == psutil.STATUS_STOPPED and name not in self._stopped:
            self._stopped[name] = None
            self._log(name, ProcessStopped(pid=process.pid, by=self._ends_by.pop(name, "")))
        elif status != psutil.STATUS_STOPPED and name in self._stopped:
            del self._stopped[name]
            self._log(name, ProcessContinued(pid=process.pid))

    async def watch_nodes(
        self, nodes: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]], ask_s: float = ASK_S
    ) -> None:
        """Tell what becomes of the raylets of a cluster that the run has joined. ``nodes``: those that live, as
        ``clusters.RayCluster.nodes`` has them. Ends with the cluster, whose end is told elsewhere."""
        gone: dict[str, None] = {}
        before: dict[str, None] = {}
        with contextlib.suppress(InfrastructureError):
            while True:
                alive = _raylets(await nodes())
                for name in before:
                    if name not in alive:
                        gone[name] = None
                        self._log(name, ProcessDied(pid=0, by=""))
                for name in alive:
                    if name in gone:
                        del gone[name]
                        self._log(name, ProcessStarted(pid=0))
                before = alive
                await asyncio.sleep(ask_s)


def _raylets(nodes: Sequence[Mapping[str, Any]]) -> dict[str, None]:
    """``raylet/10.0.0.1``, and ``raylet/10.0.0.1-2`` for the second one at that address."""
    at = Counter[str]()
    found: dict[str, None] = {}
    for node in nodes:
        address = node["NodeManagerAddress"]
        at[address] += 1
        found[f"{RAYLET}{address}" + (f"-{at[address]}" if at[address] > 1 else "")] = None
    return found
