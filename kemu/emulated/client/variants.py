"""What clients may be made of instead: the classes of their variants (:mod:`kemu.emulated.variants`).

Client    how informers begin, and what they do about a gap
Watches   from which revision a watch goes on
Elector   how a leader gives its lease up
"""

from __future__ import annotations

from typing import Any, ClassVar

from kemu.emulated.client.clients import Client
from kemu.emulated.client.elections import Elector
from kemu.emulated.client.watches import Watches
from kemu.emulated.variants import replaces
from kemu.messages.v1 import api_pb2


@replaces(Client, "relist-on-gap")
class _NeverRelists(Client):
    """An informer goes on with what comes from now on."""

    __slots__ = ()
    relists: ClassVar[bool] = False


@replaces(Client, "k8s-59848")
class _Lists(Client):
    """An informer begins with a list, at first from any cache."""

    __slots__ = ()
    streams_lists: ClassVar[bool] = False


@replaces(Watches, "watch-resume")
class _StartsFromNow(Watches):
    """A watch continues after the list that it began with, but not after a lost connection: then it begins with what
    is there."""

    __slots__ = ("_begun",)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._begun: set[int] = set()
        """Ids of watches that were asked for before."""

    def take(self) -> api_pb2.WatchRequest | None:
        request = super().take()
        if request is not None and request.HasField("create"):
            create = request.create
            if create.watch_id in self._begun:
                create.resource_version = "0"
            self._begun.add(create.watch_id)
        return request


@replaces(Elector, "k8s-131867")
class _ReleasesBlindly(Elector):
    """The release builds on the renewal that the leader has seen last."""

    async def _transitions(self, deadline_ns: int) -> int:
        return self._observed.transitions
