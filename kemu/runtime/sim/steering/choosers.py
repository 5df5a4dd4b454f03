"""Who chooses when messages arrive, where not the scenario alone does."""

from __future__ import annotations

from typing import Protocol

from kemu.runtime.sim.steering.messages import Message


class Chooser(Protocol):
    """Chooses, for each message between two actors, how much later than usual it arrives.

    The order of messages of one instant is such a choice, too: one that comes a nanosecond later is behind all others
    of that instant. Messages of one direction of one call stay in their order, whatever is chosen.
    """

    def delay_ns(self, message: Message) -> int:
        """Called when the message is sent; not below 0."""
        ...
