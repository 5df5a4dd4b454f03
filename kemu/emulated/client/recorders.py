"""Event objects: what an actor reports about an object, as ``kubectl get events`` shows it.

    recorder = Recorder(env, client, "default-scheduler", "0")
    recorder.event(pod, WARNING, "FailedScheduling", "Scheduling", "0/5 nodes are available: 5 Insufficient cpu.")

Mirrors client-go ``tools/events`` (the broadcaster and its recorders, events.k8s.io/v1), stored as core/v1 Events whose
``message`` is the note, ``involvedObject`` what the event regards, ``reportingComponent`` the controller. Recording
never waits and never fails: it is written in the background, tried again while the API server is away, and given up
after that; the run log says what was lost (``client.event_lost``).

Events that are equal but for their note and time make a series: the second one puts a count on the object, later ones
only count in memory, until the series has rested for six minutes and its last count is written. Equal means also that
the object did not change in between, for the reference to it carries its resource version.

Of actors but schedulers, clusters with all events have the older form (client-go ``tools/record``), as in Kubernetes:
source, first and last time, and a count that every repetition writes. Only the same note is a repetition there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from kemu.emulated.objects import meta, names, resources
from kemu.emulated.objects.conversion import convert
from kemu.errors import AlreadyExists, ApiError, NotFound, OutcomeUnknown, ServiceUnavailable
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Env
from kemu.runtime.runlog.events import EventLost

KUBELET = "kubelet"
NORMAL, WARNING = "Normal", "Warning"

ALL, NOTABLE, NONE = "all", "notable", "none"
LEVELS = (NOTABLE, ALL, NONE)
"""Which events are written, the default first: ``notable`` leaves out those that every object goes through in its
usual life."""

FINISH_S = 6 * 60
"""A series without an event for this long is over (``finishTime``); checked at this interval."""
REFRESH_S = 30 * 60
"""How often a series that goes on is written again, so that it does not expire (``refreshTime``)."""
RETRY_S = 10
"""Between tries while the API server is away. Without client-go's jitter: a draw would change what the actor decides
next."""
MAX_TRIES = 12
MAX_WAITING = 1000
"""Events that wait to be written; beyond that, new ones are dropped (``maxQueuedEvents``)."""

NOTE_BYTES, INSTANCE_BYTES = 1024, 128
"""Limits of ``pkg/apis/core/validation``."""
_CUT = " ..."


class Sink(Protocol):
    """The part of :class:`kemu.emulated.client.clients.Client` that writes events."""

    async def create(self, obj: KubernetesObject) -> KubernetesObject: ...

    async def patch(
        self,
        resource: str,
        name: str,
        namespace: str,
        patch: Mapping[str, Any],
        subresource: str = "",
        type: str = "merge",  # noqa: A002  (the field's word)
    ) -> KubernetesObject: ...


MOST_KNOWN = 4096
"""Events of the older form that a recorder recognises when they come again (``maxLruCacheEntries`` of client-go)."""


class _Known:
    """An event of the last minutes, as bytes: parsed it takes ten times their memory, and few come again."""

    __slots__ = ("_is_old", "_wire", "count", "last_ns")

    def __init__(self, event: core_v1_pb2.Event, now_ns: int) -> None:
        self._is_old = not event.HasField("eventTime")
        self._wire = event.SerializeToString(deterministic=True)
        self.count = 1
        """How often it came; from 2 on it is a series."""
        self.last_ns = now_ns - now_ns % 1000
        """When it came last, in Unix nanoseconds with the precision of a ``MicroTime``."""

    def came(self, now_ns: int) -> None:
        self.last_ns = now_ns - now_ns % 1000

    def event(self) -> core_v1_pb2.Event:
        event = core_v1_pb2.Event.FromString(self._wire)
        if self._is_old:
            event.count = self.count
            meta.set_time(event.lastTimestamp, self.last_ns)
        elif self.count > 1:
            event.series.count = self.count
            meta.set_time(event.series.lastObservedTime, self.last_ns)
        return event


class Recorder:
    """The events of one controller of one actor."""

    def __init__(
        self, env: Env, sink: Sink, controller: str, host: str, level: str = NOTABLE, *, schedules: bool = False
    ) -> None:
        """``controller`` is a qualified name such as ``kubelet``; ``host`` tells its instances apart. ``schedules``: it
        is that of a scheduler."""
        if level not in LEVELS:
            raise ValueError(f"events: {level!r} is not one of: {', '.join(LEVELS)}")
        self._env = env
        self._unix_ns = env.clock.unix_ns
        self._sink = sink
        self._controller = controller
        self._instance = f"{controller}-{host}"[:INSTANCE_BYTES]
        self._level = level
        self._is_old = level == ALL and not schedules
        """Whether its events have the older form."""
        self._host = host if controller == KUBELET else ""
        self.writes_routine = level == ALL
        """Whether routine events are written."""
        self._known: dict[tuple[Any, ...], _Known] = {}
        """Events of the last minutes, by what makes them equal; those that came again are series."""
        self._waiting = 0
        self._last_ns = 0
        self._watches = False

    def _forget(self) -> None:
        """Drop the event of the older form that has not come for longest, where there are too many."""
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def event(
        self,
        regarding: KubernetesObject,
        event_type: str,
        reason: str,
        action: str,
        note: str,
        related: core_v1_pb2.Pod | None = None,
        *,
        routine: bool = False,
        field_path: str = "",
    ) -> None:
        """``related``: a second object that takes part. ``routine``: part of the usual life of ``regarding``.
        ``field_path``: the part of ``regarding`` that is meant.

        A note that is too long is cut. Raises KeyError when ``regarding`` or ``related`` is no API object.
        """
        if self._level == NONE or (routine and self._level != ALL):
            return
        reference = _reference(regarding)
        if field_path:
            reference.fieldPath = field_path
        other = None if related is None else _reference(related)
        now_ns = self._unix_ns()
        key: tuple[Any, ...]
        if self._is_old:
            # "Created pod: a" is not "Created pod: b"; which version the object had does not count (``getEventKey``).
            key = event_type, action, reason, _key(reference, with_version=False), other and _key(other), note
        else:
            key = event_type, action, reason, _key(reference), other and _key(other)
        known = self._known.get(key)
        if known is not None:
            if self._is_old:
                self._known[key] = self._known.pop(key)
            self._again(known, now_ns)
            return
        event = core_v1_pb2.Event(
            involvedObject=reference,
            related=other,
            reason=reason,
            message=note if len(note) * 4 <= NOTE_BYTES else shorten(note),
            type=event_type,
            reportingComponent=self._controller,
        )
        # Two events of one instant need two names; real clocks never stand still.
        self._last_ns = max(self._last_ns + 1, now_ns)
        event.metadata.namespace = reference.namespace or "default"
        event.metadata.name = event_name(reference.name, self._last_ns)
        if self._is_old:
            event.source.component, event.count = self._controller, 1
            if self._host:
                event.source.host = event.reportingInstance = self._host
            for time in (event.firstTimestamp, event.lastTimestamp):
                meta.set_time(time, now_ns)
        else:
            event.action, event.reportingInstance = action, self._instance
            meta.set_time(event.eventTime, now_ns)
        self._known[key] = _Known(event, now_ns)
        if self._is_old:
            self._forget()
        if not self._watches:
            self._keep_watch()
        self._send(event, {})

    # Series ---------------------------------------------------------------------------------------------------------

    def _again(self, known: _Known, now_ns: int) -> None:
        known.count += 1
        known.came(now_ns)
        if self._is_old or known.count == 2:
            self._send_again(known)

    def _send_again(self, known: _Known) -> None:
        event = known.event()
        if event.HasField("series"):
            self._send(event, {"series": convert.to_json(event.series)})
        else:
            self._send(event, {"count": event.count, "lastTimestamp": convert.to_value(event.lastTimestamp)})

    def _keep_watch(self) -> None:
        """Look after the series every few minutes, as long as there are events to look after."""
        self._watches = True
        self._env.spawn(self._look_after(), f"series of {self._controller}")

    async def _look_after(self) -> None:
        clock = self._env.clock
        while self._known:
            # At multiples of the period, as if it had been looked all the time.
            rounds = clock.now_ns() // (FINISH_S * SECOND_NS) + 1
            await clock.sleep_until_ns(rounds * FINISH_S * SECOND_NS, background=True)
            refreshes = rounds * FINISH_S % REFRESH_S == 0
            rested_ns = self._unix_ns() - FINISH_S * SECOND_NS
            for key, known in list(self._known.items()):
                is_series = known.count > 1 and not self._is_old
                if known.last_ns < rested_ns:
                    del self._known[key]
                    if is_series:
                        self._send_again(known)
                elif is_series and refreshes:
                    self._send_again(known)
        self._watches = False

    # Writing --------------------------------------------------------------------------------------------------------

    def _send(self, event: core_v1_pb2.Event, patch: dict[str, Any]) -> None:
        """``patch``: of an event that came again; empty for a new one."""
        if self._waiting >= MAX_WAITING:
            self._lost(event, "too many events are waiting")
            return
        self._waiting += 1
        self._env.spawn(self._write(event, patch), f"event {event.metadata.name}")

    async def _write(self, event: core_v1_pb2.Event, patch: dict[str, Any]) -> None:
        why = ""
        for tries in range(MAX_TRIES):
            if tries:
                await self._env.clock.sleep(RETRY_S, background=True)
            try:
                if not (patch and await self._patched(event, patch)):
                    await self._sink.create(event)
                why = ""
                break
            except (ServiceUnavailable, AlreadyExists) as error:
                why = error.message
                if isinstance(error, OutcomeUnknown) or (isinstance(error, AlreadyExists) and not patch):
                    break
            except ApiError as error:
                why = error.message
                break
        self._waiting -= 1
        if why:
            self._lost(event, why)

    async def _patched(self, event: core_v1_pb2.Event, patch: dict[str, Any]) -> bool:
        """False where it has expired, or its creation has not arrived yet; then there is a next try."""
        metadata = event.metadata
        try:
            await self._sink.patch("events", metadata.name, metadata.namespace, patch, type="strategic")
        except NotFound:
            return False
        return True

    def _lost(self, event: core_v1_pb2.Event, why: str) -> None:
        metadata = event.metadata
        lost = EventLost(namespace=metadata.namespace, name=metadata.name, reason=event.reason, message=why)
        self._env.log(lost)


def shorten(note: str) -> str:
    """A note within its limit, in bytes (``truncateMessage``)."""
    if len(note.encode()) <= NOTE_BYTES:
        return note
    return note.encode()[: NOTE_BYTES - len(_CUT)].decode(errors="ignore") + _CUT


def event_name(name: str, unix_ns: int) -> str:
    """``<name>.<time in hex>``; of a name too long for that, as much as fits."""
    suffix = f".{unix_ns:x}"
    made = name + suffix
    return made if not names.dns_subdomain(made) else name[: 253 - len(suffix)].rstrip("-.") + suffix


def _reference(obj: KubernetesObject) -> core_v1_pb2.ObjectReference:
    resource, metadata = resources.BY_MESSAGE[type(obj)], obj.metadata
    return core_v1_pb2.ObjectReference(
        kind=resource.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        apiVersion=resource.api_version,
        resourceVersion=metadata.resourceVersion,
    )


def _key(reference: core_v1_pb2.ObjectReference, *, with_version: bool = True) -> str:
    """In one string, which takes a third of the memory of a tuple of them."""
    version = reference.resourceVersion if with_version else ""
    parts = reference.kind, reference.namespace, reference.name, reference.uid, version
    return "/".join(parts) + reference.fieldPath
