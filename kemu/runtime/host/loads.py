"""How much a process has to do: CPU, memory, calls, and how late its event loop and its log are.

A :class:`Meter` counts from the start of its process and is read about once a second; the driver makes rates of it
(``driver.loads``). Neighbours: ``ticks`` measures the event loop, ``inbound`` counts calls, ``control`` sends samples
along with the log.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from kemu.messages.v1 import cell_pb2
from kemu.runtime.host import ticks
from kemu.runtime.host.calls import inbound

INTERVAL_S = 1.0
"""How often a sample is sent, in real time."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Meter:
    """Meter of this process."""

    def __init__(self, loop: ticks.Ticks, traffic: inbound.Traffic, unsent: Callable[[], int]) -> None:
        """``loop``: of the thread that runs the actors. ``unsent``: how many events of the log have not been read."""
        self._loop = loop
        self._traffic = traffic
        self._unsent = unsent
        self._due_s = 0.0

    def make_due(self) -> None:
        """The next message has a sample: what was until now is not to be added to what comes."""
        self._due_s = 0.0

    def sample_when_due(self) -> cell_pb2.Load | None:
        now_s = time.monotonic()
        if now_s < self._due_s:
            return None
        self._due_s = now_s + INTERVAL_S
        return self.sample()

    def sample(self) -> cell_pb2.Load:
        account = self._loop.account()
        return cell_pb2.Load(
            real_ns=account.now_ns,
            cpu_ns=time.process_time_ns(),
            loop_cpu_ns=account.ran_ns,
            loop_queued_ns=account.queued_ns,
            loop_late_ns=self._loop.take_longest_late_ns(),
            memory_bytes=memory_bytes(),
            calls=self._traffic.received,
            open_calls=self._traffic.open,
            unsent_events=self._unsent(),
        )


def memory_bytes() -> int:
    """Memory bytes of this process: what stays in memory; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0
