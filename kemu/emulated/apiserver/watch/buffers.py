"""How much may wait for clients, and how much may be written to them at a time.

An event that waits is a reference to bytes that the watch cache has made once, however many watchers it waits for; it
is copied only when its message is written. So what waits costs little, and what is being written is bounded tightly:
by client, and for the server. Neighbours: ``fanout`` holds what waits, and ends watches that are over their bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

from kemu.runtime.env import SECOND_NS, Clock

MIB = 1 << 20

EVENT_BYTES = 128
"""What an event costs that waits, beside its object."""
SMALL_BYTES = 64 << 10
"""A smaller message is written without more ado: it fits into the window of an idle connection."""
STALL_NS = SECOND_NS
"""A client that takes longer to read a message loses its stream when others have to wait for that."""


@dataclass(frozen=True)
class Bounds:
    """In bytes."""

    watch: int = 64 * MIB
    """What may wait for one watch."""
    client: int = 128 * MIB
    """What may wait for all watches of a client."""
    server: int = 512 * MIB
    """What may wait for all clients, with what is being written to them. An object that waits for several watches
    counts once."""
    review: int = 8 * MIB
    """By how much all that waits may grow until it is compared with these bounds."""
    writing_client: int = 16 * MIB
    """What may be written to a client at a time; a single message may always be."""
    writing_server: int = 128 * MIB
    """What may be written to all clients at a time."""


class Writer(Protocol):
    """A stream that is being written to."""

    @property
    def by(self) -> Hashable:
        """The client."""
        ...

    def wake(self) -> None:
        """It may write now; it asks again."""
        ...


class Writes:
    """The messages that are being written, and the streams that wait until theirs may be."""

    def __init__(self, clock: Clock, bounds: Bounds, end: Callable[[Writer], None]) -> None:
        """``end`` ends a stream whose client does not read."""
        self.total = 0
        """Bytes."""
        self._clock = clock
        self._bounds = bounds
        self._end = end
        self.under_way: dict[Writer, tuple[int, int]] = {}
        """Size and beginning of each, oldest first."""
        self._of_client: dict[Hashable, int] = {}
        self.waiting: dict[Writer, bool] = {}
        """Whether they wait for what is being written to other clients."""
        self._is_looking = False

    def begin(self, writer: Writer, size: int) -> bool:
        """Whether a message of that size may be written now; if not, the stream is woken when it should ask again."""
        mine = self._of_client.get(writer.by, 0)
        if mine and mine + size > self._bounds.writing_client:
            return self._wait(writer, False)
        if self.total and self.total + size > self._bounds.writing_server:
            return self._wait(writer, True)
        self._of_client[writer.by] = mine + size
        self.total += size
        self.under_way[writer] = size, self._clock.now_ns()
        return True

    def end(self, writer: Writer) -> None:
        """Its message is written, or never will be. May be repeated."""
        self.waiting.pop(writer, None)
        size, _ = self.under_way.pop(writer, (0, 0))
        if not size:
            return
        self.total -= size
        rest = self._of_client[writer.by] - size
        if rest:
            self._of_client[writer.by] = rest
        else:
            del self._of_client[writer.by]
        waiting, self.waiting = self.waiting, {}
        for other in waiting:
            other.wake()

    def is_waiting(self, writer: Writer) -> bool:
        return writer in self.waiting

    def _wait(self, writer: Writer, for_others: bool) -> bool:
        """Meanwhile look for those that do not read."""
        self.waiting[writer] = for_others
        if not self._is_looking:
            self._is_looking = True
            self._clock.call_at_ns(self._clock.now_ns() + STALL_NS // 2, self._end_stalled)
        return False

    def _end_stalled(self) -> None:
        self._is_looking = False
        if not self.waiting:
            return
        before_ns = self._clock.now_ns() - STALL_NS
        stalled = [writer for writer, (_, since_ns) in self.under_way.items() if since_ns <= before_ns]
        is_full = any(self.waiting.values())
        clients = {writer.by: None for writer in self.waiting}
        for writer in stalled:
            if is_full or writer.by in clients:
                self._end(writer)
        for writer, for_others in list(self.waiting.items()):
            self._wait(writer, for_others)
