"""A Watch stream of a client: many watches multiplexed by id, resumed where they stood after it broke.

Subscribers are informers (:mod:`kemu.emulated.client.informers`); each keeps the revision up to which it has seen
everything.
"""

from __future__ import annotations

from typing import Protocol

from kemu.emulated.client import endpoints, streams
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import Env


class Subscriber(Protocol):
    """Who receives the events of one watch."""

    resource: str
    namespace: str
    label_selector: str
    field_selector: str
    revision: int
    """All changes up to this one have been received: a new stream continues after it."""
    begins: bool
    """It has nothing yet: a new stream brings it the newest state."""

    def receive(self, event: api_pb2.WatchEvent, *, alone: bool = False) -> bool:
        """Returns whether it is the first one of a batch, so that :meth:`end_batch` shall follow. ``alone``: it is the
        whole batch, and has been ended then."""
        ...

    def end_batch(self) -> None:
        """The message that carried the events is exhausted."""
        ...


class Watches:
    """Connects when there is something to watch; watches survive the loss of the connection, under the same id."""

    __slots__ = ("_last_id", "_open", "_outgoing", "_stream", "_subscribers")

    def __init__(self, env: Env, servers: endpoints.Endpoints) -> None:
        self._last_id = 0
        self._subscribers: dict[int, Subscriber] = {}
        self._outgoing: list[api_pb2.WatchRequest] = []
        self._open = False
        self._stream = streams.Stream(env, servers, "Watch", self)

    def next_id(self) -> int:
        """An id never used before by this client."""
        self._last_id += 1
        return self._last_id

    def start(self, watch_id: int, subscriber: Subscriber) -> None:
        """Watch from ``subscriber.revision`` on."""
        self._subscribers[watch_id] = subscriber
        if self._open:
            self._outgoing.append(_create(watch_id, subscriber))
        self._stream.wake()

    def restart(self, watch_id: int) -> None:
        """The server has ended this watch; ask for it again, after ``subscriber.revision``."""
        subscriber = self._subscribers.get(watch_id)
        if subscriber is not None:
            self.start(watch_id, subscriber)

    def stop(self, watch_id: int, *, ended: bool = False) -> None:
        """No more events of this watch. ``ended``: the server has ended it, there is no need to tell it."""
        if self._subscribers.pop(watch_id, None) is not None and self._open and not ended:
            request = api_pb2.WatchRequest()
            request.cancel.watch_id = watch_id
            self._outgoing.append(request)
            self._stream.wake()

    def interpose(self, subscriber: Subscriber, between: Subscriber) -> None:
        """``between`` receives the events of ``subscriber``'s watch in its place."""
        for watch_id, known in self._subscribers.items():
            if known is subscriber:
                self._subscribers[watch_id] = between

    # --- called by the stream ----------------------------------------------------------------------------------------

    def is_wanted(self) -> bool:
        return bool(self._subscribers)

    def on_open(self) -> None:
        self._open = True
        self._outgoing.clear()
        for watch_id, subscriber in self._subscribers.items():
            self._outgoing.append(_create(watch_id, subscriber))

    def take(self) -> api_pb2.WatchRequest | None:
        return self._outgoing.pop(0) if self._outgoing else None

    def on_message(self, response: api_pb2.WatchResponse) -> None:
        subscribers = self._subscribers
        touched = []
        events = response.events[:]
        if len(events) == 1:  # as most, where pods come one by one
            subscriber = subscribers.get(events[0].watch_id)
            if subscriber is not None:
                subscriber.receive(events[0], alone=True)
            return
        for event in events:
            subscriber = subscribers.get(event.watch_id)
            if subscriber is not None and subscriber.receive(event):
                touched.append(subscriber)
        for subscriber in touched:
            subscriber.end_batch()

    def on_lost(self, peer: str, why: str) -> None:
        self._open = False


def _create(watch_id: int, subscriber: Subscriber) -> api_pb2.WatchRequest:
    request = api_pb2.WatchRequest()
    create = request.create
    create.watch_id = watch_id
    create.resource.resource = subscriber.resource
    create.resource.namespace = subscriber.namespace
    create.label_selector = subscriber.label_selector
    create.field_selector = subscriber.field_selector
    create.allow_bookmarks = True
    if subscriber.begins:
        subscriber.revision = 0
        create.send_initial_events = True
        create.resource_version_match = "NotOlderThan"
    else:
        create.resource_version = str(subscriber.revision)
    return request
