"""Who chooses when messages arrive, where not the scenario alone does."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from kemu.runtime.holds import Label
from kemu.runtime.sim.steering.messages import Message


class Chooser(Protocol):
    """Chooses, for each message between two actors, how much later than usual it arrives.

    The order of messages of one instant is such a choice, too: one that comes a nanosecond later is behind all others
    of that instant. Messages of one direction of one call stay in their order, whatever is chosen.
    """

    def delay_ns(self, message: Message) -> int:
        """Called when the message is sent; not below 0."""
        ...


class Flight(Protocol):
    """The messages of a run, as a chooser may ask for them and move them."""

    def now_ns(self) -> int:
        """In the time of the run."""
        ...

    def newest_labels(self) -> tuple[Label, ...]:
        """What the message that was sent last is about."""
        ...

    def move(self, message: Message, delay_ns: int) -> None:
        """Have a message that is still in flight arrive so much later than usual; it is never moved forward."""
        ...


@runtime_checkable
class Attentive(Protocol):
    """A chooser that looks closer: at what messages are about, or at what has arrived."""

    def delay_ns(self, message: Message) -> int: ...

    def begin(self, flight: Flight) -> None:
        """Called before the first message."""
        ...

    def delivered(self, message: Message) -> None:
        """Called when a message that it has chosen a delay for has arrived."""
        ...
