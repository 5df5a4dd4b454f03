"""Timers of a controller in virtual time: a requeue after ten seconds comes when the cluster is ten seconds further.

The controller is built for that (examples/clock): it writes when the first of its timers ends, and hears when the
cluster has come so far. Both are Unix times in nanoseconds, as eight bytes, least first; 0: it has no timer. Others
write nothing, and their timers take real time.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket

from kemu.emulated.gateway.limits.connections import Heard
from kemu.lab.up.virtual.drivers import Driver, Ended
from kemu.runtime.env import SECOND_NS

_SIZE = 8
_MOST = 4096


class Alarms:
    """Of one process; on the event loop of its cluster."""

    def __init__(self, driver: Driver, epoch_unix_s: int) -> None:
        self._driver = driver
        self._epoch_ns = epoch_unix_s * SECOND_NS
        self._loop = asyncio.get_running_loop()
        self._here, self.there = socket.socketpair()
        """``there``: what the process gets."""
        self._here.setblocking(False)
        self._loop.add_reader(self._here, self._read)
        self._rest = b""
        self._end_ns = 0
        self._waiting: asyncio.TimerHandle | asyncio.Task[None] | None = None
        self._is_virtual = False
        self.is_used = False
        """Timers of the process follow the virtual time."""

    def begin(self) -> None:
        """It is ready: from now on its timers end in virtual time. Until then, as time stands, in real time."""
        if not self._is_virtual:
            self._is_virtual = True
            self._arm()

    def close(self) -> None:
        """May be repeated."""
        self._disarm()
        if self._here.fileno() >= 0:
            self._loop.remove_reader(self._here)
        self._here.close()
        self.there.close()

    def _read(self) -> None:
        try:
            found = self._here.recv(_MOST)
        except BlockingIOError:
            return
        except OSError:
            found = b""
        if not found:
            self.close()
            return
        self._rest += found
        whole = len(self._rest) // _SIZE * _SIZE
        if whole:
            self.is_used = True
            self._end_ns = int.from_bytes(self._rest[whole - _SIZE : whole], "little")
            self._rest = self._rest[whole:]
            self._arm()

    def _disarm(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _arm(self) -> None:
        self._disarm()
        if not self._end_ns:
            return
        Heard.times += 1  # time may not pass before this is known
        if self._is_virtual:
            self._waiting = self._loop.create_task(self._wait())
        else:
            self._waiting = self._loop.call_later(self._left_s(), self._ring)

    def _left_s(self) -> float:
        return (self._end_ns - self._epoch_ns - self._driver.now_ns()) / SECOND_NS

    async def _wait(self) -> None:
        with contextlib.suppress(Ended):
            await self._driver.sleep(self._left_s())
            self._ring()

    def _ring(self) -> None:
        end_ns, self._end_ns = self._end_ns, 0
        with contextlib.suppress(OSError):  # it is gone
            self._here.send(end_ns.to_bytes(_SIZE, "little"))
