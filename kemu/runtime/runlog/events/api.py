"""The API server's events: requests that were served or refused."""

from __future__ import annotations

from kemu.runtime.runlog.events.declared import Event


class OfRequest(Event):
    """About a request."""

    verb: str
    resource: str
    namespace: str
    name: str
    uid: str
    by: str
    start: int


class ApiRequest(OfRequest, kind="api.request", by="API server"):
    """A pod was created, bound, deleted or evicted"""

    rev: int


class RequestRefused(OfRequest, kind="api.refused", by="API server", on_page=True):
    """A request of any kind was refused"""

    reason: str
    message: str


class RequestThrottled(Event, kind="api.throttled", by="API server"):
    """A request was refused unread because the server is overloaded (429)"""

    by: str
    verb: str
    retry_after_s: int


class WatchCut(Event, kind="api.watch_cut", by="API server", on_page=True):
    """A watcher was too slow"""

    by: str
    reason: str


class ObjectCorrupt(Event, kind="api.corrupt", by="API server"):
    """The store holds something that is no object; it is not shown"""

    key: str
