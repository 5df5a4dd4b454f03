"""The API server's events: requests that were served or refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kemu.errors import OutcomeUnknown
from kemu.runtime.runlog.events.declared import Event
from kemu.runtime.runlog.events.words import BAD, OUTCOME, USUAL, Deed, Line, Names, whole
from kemu.runtime.words import short

_QUOTA = re.compile(r"(?:exceeded|failed) quota: ([^:,]+)[:,] *(.*)", re.DOTALL)


def refusing_quota(message: str) -> tuple[str, str]:
    """The quota that refused a request and what it said; empty texts where none did."""
    found = _QUOTA.search(message)
    return (found[1], found[2]) if found else ("", "")


class OfRequest(Event):
    """About a request."""

    verb: str
    resource: str
    namespace: str
    name: str
    uid: str
    by: str
    start: int

    @property
    def object_key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ApiRequest(OfRequest, kind="api.request", by="API server"):
    """A pod was created, bound, deleted or evicted"""

    rev: int

    def deed(self, pod: str, names: Names) -> Deed | None:
        """Deletions: every other write is told by its actor, or as what was stored."""
        if self.resource != "pods" or self.verb not in ("delete", "evict"):
            return None
        text = f"{self.verb}{'d' if self.verb == 'delete' else 'ed'} {names.pod(self.object_key, self.uid)}"
        # A kubelet deletes what has ended; a user is told of by the event of the scenario.
        weight = USUAL if self.by.startswith("kubelet/") else OUTCOME
        return Deed(text, text, weight, f"{self.verb} by {self.by}", who=self.by, about=self.object_key)


class RequestRefused(OfRequest, kind="api.refused", by="API server", on_page=True):
    """A request of any kind was refused"""

    reason: str
    message: str

    def lines(self, before: Event | None) -> Sequence[Line]:
        """Bindings, and requests of controllers that a quota refused; those of the user are told as the user's."""
        if self.verb == "bind":
            says = f"not bound: {self.reason}"
            return (Line("conflict", f"is {says}", f"are {says}", BAD, self.message, who=self.by),)
        quota, why = refusing_quota(self.message)
        by, noun = self.by.removeprefix("controller/"), self.resource.removesuffix("s")
        phrase = f"{by} may not create a {noun}: quota {quota} of {self.namespace}"
        return (whole("refused", phrase, phrase, BAD, why, who="API server"),) if quota else ()

    def deed(self, pod: str, names: Names) -> Deed:
        is_pod, key = self.resource == "pods", self.object_key
        about = short(key) if is_pod else f"{self.resource}/{short(key)}"
        text = f"refused the {self.verb} of {about} by {names.actor(self.by)} ({self.reason})"
        # A scheduler tells of its binding itself; writes that collide are made again.
        is_outage = self.reason == "ServiceUnavailable" or OutcomeUnknown.is_told_by(self.reason, self.message)
        weight = OUTCOME if is_pod and self.verb != "bind" and not is_outage else USUAL
        what = f"{self.verb} refused {self.reason}"
        return Deed(text, f"refuses {self.verb}", weight, what, about=key if is_pod else "")


class RequestThrottled(Event, kind="api.throttled", by="API server"):
    """A request was refused unread because the server is overloaded (429)"""

    by: str
    verb: str
    retry_after_s: int


class WebhookAsked(Event, kind="api.webhook", by="API server"):
    """An admission webhook was asked, or the hook that stands for it"""

    webhook: str
    configuration: str
    operation: str
    resource: str
    subresource: str
    namespace: str
    name: str
    start: int
    allowed: bool
    changes: int
    message: str


class ConversionAsked(Event, kind="api.conversion", by="API server"):
    """A conversion webhook was asked for an object in another version, or the hook that stands for it"""

    definition: str
    wanted: str
    namespace: str
    name: str
    start: int
    message: str


class WatchCut(Event, kind="api.watch_cut", by="API server", on_page=True):
    """A watcher was too slow"""

    by: str
    reason: str


class ObjectCorrupt(Event, kind="api.corrupt", by="API server"):
    """The store holds something that is no object; it is not shown"""

    key: str


class RequestServed(Event, kind="api.served", by="API server"):
    """A request of any kind was answered, where the scenario says `metrics: true`"""

    by: str
    verb: str
    """As in metrics: `GET LIST POST PUT PATCH APPLY DELETE DELETECOLLECTION`."""
    group: str
    version: str
    resource: str
    subresource: str
    scope: str
    """`resource`, `namespace` or `cluster`."""
    dry_run: str
    """`All`, or empty."""
    code: int
    """Of HTTP."""
    start: int
