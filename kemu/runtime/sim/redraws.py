"""A run whose future is drawn anew: from some instant on, chance is that of another seed.

What was drawn before and lasts beyond that instant is drawn again, too, given that it lasts so long: nobody in the run
can know yet how long a message on its way will take.
"""

from __future__ import annotations

from collections.abc import Callable

from kemu.runtime.random_streams import Redraw, Streams
from kemu.runtime.sim.loops import VirtualLoop

_TRIES = 200


class Redrawing:
    """The redraws of one run."""

    def __init__(self, loop: VirtualLoop, redraw: Redraw, streams: Streams) -> None:
        self._loop = loop
        self._redraw = redraw
        self._streams = streams
        self._at_ns = -1
        """In the loop's time; -1: the clock stands still."""

    def begin(self) -> None:
        """The clock starts now."""
        self._at_ns = self._loop.now_ns + self._redraw.at_ns
        # All that happens at the last instant of the past is past.
        self._loop.set_timer(self._at_ns + 1, self._streams.change, (self._redraw.seed,), None, background=True)

    def lasting(self, drawn_ns: int, draw_again: Callable[[], int]) -> int:
        """A duration that begins now: the one that was drawn, unless it lasts beyond the instant."""
        left_ns = self._at_ns - self._loop.now_ns
        if not 0 <= left_ns < drawn_ns:
            return drawn_ns
        for _ in range(_TRIES):
            again_ns = draw_again()
            if again_ns > left_ns:
                return again_ns
        return drawn_ns  # so late that it is as good as any

    def stream(self, *names: str | int) -> Callable[[], float]:
        """Numbers of the other seed, for what is drawn again."""
        return Streams(self._redraw.seed).stream("again", *names).random
