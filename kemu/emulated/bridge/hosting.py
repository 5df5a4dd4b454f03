"""Actors of this process on the wall clock, against a real cluster: as Kubernetes' components run, one process each.

There is no runtime around them that starts them again or carries out faults; the one that runs this process does. The
clock shows the machine's time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kemu.emulated.bridge import apiservers
from kemu.errors import ActorFailed, KemuError
from kemu.runtime import user_code
from kemu.runtime.env import SECOND_NS, ActorSpec, LogSink
from kemu.runtime.host import hosts, wall_clocks
from kemu.runtime.runlog import folders, frames
from kemu.runtime.runlog.events import ActorExited

SERVER = "apiserver/0"
"""What the actors dial."""


def writer(out: Path) -> frames.Writer:
    """The writer of a run log in the folder ``--out``. Raises KemuError."""
    folders.check_replaced(out, folders.Held("run", ""), force=False)
    try:
        out.mkdir(parents=True, exist_ok=True)
        return frames.Writer(out / frames.FILE_NAME, {"runtime": "cluster", "seed": 0}, flush_every_s=1.0)
    except OSError as error:
        raise KemuError(f"--out {out}: {error.strerror}") from None


class Process:
    """One real process with a bridge and the actors that use it."""

    def __init__(self, cluster: Mapping[str, Any], sink: LogSink, seed: int | None = None) -> None:
        """``cluster``: the config of :mod:`kemu.emulated.bridge.apiservers`. ``seed``: None for another one each time,
        so that two replicas do not decide alike."""
        self._loop = asyncio.get_running_loop()
        self._bridge = ActorSpec(SERVER, apiservers.FACTORY, cluster)
        self._stack = contextlib.ExitStack()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._names: list[str] = []
        self._is_told = False
        self.host = host = hosts.Host(self._loop, self._log, self._failed)
        self._sink = sink
        host.on_exit = lambda name: self._end()
        directory = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="kemu-"))
        host.configure(
            seed=int.from_bytes(os.urandom(6)) if seed is None else seed, directory=Path(directory), addresses={}
        )
        # Virtual time 0 is a whole second, so that timestamps show the machine's time.
        epoch_s = wall_clocks.wall_ns() // SECOND_NS
        host.clock.configure(epoch_unix_ns=epoch_s * SECOND_NS, speed=1.0, epoch_unix_s=epoch_s)

    async def start(self, specs: Sequence[ActorSpec], together: int = 1) -> None:
        """Start actors, in their order, and wait until they are ready; ``together``: how many start at a time. Raises
        ActorFailed."""
        batches = [specs[begin : begin + together] for begin in range(0, len(specs), together)]
        for batch in ([self._bridge], *batches):
            self._names += [spec.name for spec in batch]
            starting = asyncio.ensure_future(self.host.start(batch))
            await asyncio.wait([starting, self._ended], return_when=asyncio.FIRST_COMPLETED)
            if self._ended.done():
                starting.cancel()
                self._ended.result()
                return
            starting.result()

    async def run(
        self,
        signals: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM),
        *,
        asks: bool = True,
    ) -> None:
        """Until an actor has ended itself, because of a signal or not (its reason is in the log). Raises ActorFailed.

        At the first signal the actors are told to end, as by SIGTERM in a cluster: a leader gives its lease back. At
        the second one, or if not ``asks``, they are not asked.
        """
        self._is_told = not asks
        for number in signals:
            self._loop.add_signal_handler(number, self._signalled)
        try:
            await self._ended
        finally:
            for number in signals:
                self._loop.remove_signal_handler(number)

    async def stop(self) -> None:
        """Actors clean up, the last one first: a leader gives its lease back."""
        for name in reversed(self._names):
            if name in self.host.residents:
                await self.host.stop(name)
        await self.host.close()
        self._stack.close()

    def _signalled(self) -> None:
        if self._is_told:
            self._end()
        else:
            self._is_told = True
            self.host.inject("signal", "terminate", {"actor": self._names})

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def _failed(self, name: str, text: str) -> None:
        if not self._ended.done():
            error: ActorFailed = user_code.from_text(text)
            self._ended.set_exception(error)
            # A caller that stops in the meantime does not ask.
            self._ended.exception()

    def _log(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        self._sink(time_ns, actor, kind, data)
        if kind == ActorExited.KIND:
            self._end()
