"""Timers of a controller in virtual time."""

from __future__ import annotations

import asyncio
import socket

from kemu.lab.hunt.running.alarms import Alarms

EPOCH_S = 1_000
SECOND_NS = 1_000_000_000


class Driver:
    """Its sleepers wake when the test says so."""

    def __init__(self) -> None:
        self.asked_s: list[float] = []
        self.wakes = asyncio.Event()

    def now_ns(self) -> int:
        return 5 * SECOND_NS

    async def sleep(self, seconds: float) -> None:
        self.asked_s.append(seconds)
        await self.wakes.wait()
        self.wakes.clear()


def _time(seconds: float) -> bytes:
    return round(seconds * SECOND_NS).to_bytes(8, "little")


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0.001)


def test_a_timer_ends_when_the_cluster_has_come_so_far() -> None:
    async def main() -> None:
        driver = Driver()
        alarms = Alarms(driver, EPOCH_S)  # type: ignore[arg-type]
        controller = socket.socket(fileno=socket.dup(alarms.there.fileno()))
        controller.setblocking(False)
        alarms.begin()
        controller.send(_time(EPOCH_S + 15) + _time(EPOCH_S + 12)[:3])
        await _turns()
        controller.send(_time(EPOCH_S + 12)[3:])  # an earlier one
        await _turns()
        assert driver.asked_s == [10, 7]
        driver.wakes.set()
        await _turns()
        assert controller.recv(100) == _time(EPOCH_S + 12)
        controller.send(_time(0))  # there is no other
        await _turns()
        assert driver.asked_s == [10, 7]
        controller.close()
        alarms.close()
        alarms.close()

    asyncio.run(main())


def test_until_it_is_ready_timers_take_real_time() -> None:
    async def main() -> None:
        driver = Driver()
        alarms = Alarms(driver, EPOCH_S)  # type: ignore[arg-type]
        controller = socket.socket(fileno=socket.dup(alarms.there.fileno()))
        controller.setblocking(False)
        controller.send(_time(EPOCH_S + 5.01))
        await asyncio.sleep(0.05)
        assert controller.recv(100) == _time(EPOCH_S + 5.01)
        assert driver.asked_s == []
        controller.close()
        alarms.close()

    asyncio.run(main())
