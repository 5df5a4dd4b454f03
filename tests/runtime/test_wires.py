"""Messages within one process, in real time."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

from kemu.runtime.rpc.networks import LoopWire


async def test_a_message_does_not_overtake_one_that_was_late_and_is_due_now() -> None:
    wire = LoopWire(asyncio.get_running_loop())
    end: Any = SimpleNamespace(last_ns=0)
    came: list[object] = []
    wire.carry_later(0.005, end, came.append, "late")
    # The loop is busy meanwhile: it has not looked at its timers.
    time.sleep(0.02)  # noqa: ASYNC251
    wire.carry(end, came.append, "later")
    wire.post_behind([end], came.append, "behind them")
    await asyncio.sleep(0.05)
    assert came == ["late", "later", "behind them"]
    assert end.last_ns == 0, "nothing is under way: the next one takes the short way"
