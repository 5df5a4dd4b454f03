"""Clients without single safeguards (:mod:`kemu.emulated.safeguards`), for :mod:`kemu.emulated.client.clients`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kemu.emulated import safeguards
from kemu.emulated.client.watches import Watches
from kemu.messages.v1 import api_pb2


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


def watches_of(ablated: Collection[str]) -> type[Watches]:
    return safeguards.without(Watches, {"watch-resume": _StartsFromNow}, ablated)
