"""Requests in batches over one ``Session`` stream; :mod:`kemu.emulated.client.clients` offers them as verbs.

Requests issued in the same tick of the event loop leave in one message. When the connection breaks, requests that were
under way fail with :class:`kemu.errors.ConnectionLost` (their outcome is unknown). Requests made while it is away dial
at once, as those of client-go do, and share the fate of the attempt: a caller that tries again has to wait by itself. A
request that an overloaded API server has refused with Retry-After is sent again after that time, as by client-go,
unless its patience ends before (``rest.Config.Timeout``).
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

from google.protobuf.message import Message

from kemu import errors
from kemu.emulated.client import endpoints, streams
from kemu.emulated.client.limits import Buckets
from kemu.emulated.objects import resources
from kemu.emulated.objects.wire import shared_objects, wires
from kemu.messages.k8s import apiextensions_v1_pb2, coordination_v1_pb2, core_v1_pb2, meta_v1_pb2
from kemu.messages.k8s.autoscaling_v1_pb2 import Scale
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS, Env, Took
from kemu.runtime.rpc import ends
from kemu.runtime.runlog.events import ClientThrottled, GetAnswered, ListAnswered, WritesAcknowledged

M = TypeVar("M", bound=KubernetesObject)

MAX_CALLS_PER_MESSAGE = 500
"""So that one message stays far below gRPC's limits however many pods are created in an instant."""

MAX_BYTES_PER_MESSAGE = 16 << 20
"""Most bytes per message of objects and patches in a message that holds more than one of them."""

MAX_RETRIES = 10
"""How often a request is sent again because of Retry-After, as in client-go (``rest.NewRequest``)."""

THROTTLING_TOLD_NS = SECOND_NS
"""The run log tells of a request that waited as long for its token: client-go says so in its log from then on
(``extraLongThrottleLatency``)."""

_HOUSEKEEPING = frozenset((coordination_v1_pb2.Lease, core_v1_pb2.Node, core_v1_pb2.Event))
"""Requests for these are under way in an idle cluster, too."""

_STANDING = frozenset((coordination_v1_pb2.Lease, core_v1_pb2.Node))
"""Reads show these with the heartbeats of the moment, if their kubelets state them."""


_NO_IDS: set[int] = set()
_NO_RETRIES: dict[int, int] = {}
_NO_PATIENCE: dict[type[KubernetesObject], int] = {}
"""Stay empty: one for all clients, most of which are idle."""
_PREFIXES = {resource.message: f"/registry/{resource.plural}/" for resource in resources.RESOURCES}
_PREFIXES[apiextensions_v1_pb2.CustomObject] = ""
"""What the keys of a kind begin with in the store; empty: the request says which kind."""
_PLURALS = {resource.message: resource.plural for resource in resources.RESOURCES}
_PLURALS[Scale] = "scales"


def _prefix_of(call: api_pb2.Call) -> str:
    """What the key of a custom object begins with, by a call that writes it."""
    request = getattr(call, call.WhichOneof("request") or "")
    return f"/registry/{request.resource.resource}/"


class _Pending(NamedTuple):
    """A request without an answer."""

    future: asyncio.Future[Any]
    message: type[KubernetesObject]
    """Message of the objects in the answer."""
    mutating: bool
    """It changes the cluster."""
    call: api_pb2.Call
    start_ns: int
    """When it was made."""


@dataclass(frozen=True, slots=True)
class ListResult:
    """What a list returned."""

    items: list[KubernetesObject]
    resource_version: str
    """Resource version of the collection: a watch continues from here."""
    continue_token: str = ""
    """Not empty: there is more; pass it to the next list."""
    digest: int = 0
    """Sum of the digests of the items (:mod:`kemu.emulated.objects.wire.wires`), modulo 2³²: it does not depend on
    their order."""


class Commit(NamedTuple):
    """What came of several bindings in one request."""

    results: list[core_v1_pb2.Pod | errors.ApiError]
    """For each binding the pod as it is now, or why it was not bound."""
    refused_by: int | None
    """The index of the binding for which a commit was refused as a whole. Those after it were not judged."""


def error_of(status_bytes: bytes) -> errors.ApiError:
    """The exception for a serialised ``metav1.Status``."""
    status = meta_v1_pb2.Status.FromString(status_bytes)
    details = status.details
    causes = []
    if details.causes:
        causes = [errors.Cause(cause.field, cause.reason, cause.message) for cause in details.causes]
    error_class = errors.API_ERRORS.get(status.reason, errors.ApiError)
    if status.message == errors.NoSpace.MESSAGE:
        error_class = errors.NoSpace
    elif errors.OutcomeUnknown.is_told_by(status.reason, status.message):
        error_class = errors.OutcomeUnknown
    error = error_class(
        status.message,
        kind=details.kind,
        name=details.name,
        causes=causes,
        retry_after_s=details.retryAfterSeconds,
    )
    if isinstance(error, errors.Gone):
        error.continue_token = getattr(status.metadata, "continue")
    return error


@cache
def _patience(
    before: tuple[tuple[type[KubernetesObject], int], ...], kinds: tuple[type[KubernetesObject], ...], patience_ns: int
) -> Mapping[type[KubernetesObject], int]:
    """One for all clients with the same."""
    return {**dict(before), **dict.fromkeys(kinds, patience_ns)}


def digest_of(message: type[Message], listed: list[bytes], items: list[KubernetesObject]) -> int:
    """The digest of a list, from its items as bytes and as messages."""
    if message in _STANDING:
        total = sum(
            wires.standing_digest(item.metadata.name, item.metadata.resourceVersion)
            if wires.states_heartbeats(data)
            else zlib.crc32(data)
            for data, item in zip(listed, items, strict=True)
        )
    else:
        total = sum(map(zlib.crc32, listed))
    return total & 0xFFFFFFFF


def _acknowledge(
    acks: list[list[Any]], start_ns: int, message: type[KubernetesObject], metadata: meta_v1_pb2.ObjectMeta, wire: bytes
) -> None:
    """Note that a write was acknowledged."""
    version = metadata.resourceVersion
    if version:
        namespace, name = metadata.namespace, metadata.name
        key = f"{_PREFIXES[message]}{namespace}/{name}" if namespace else _PREFIXES[message] + name
        acks.append([start_ns, int(version), key, metadata.uid, zlib.crc32(wire)])


class Session:
    """Connects at the first request.

    The run log gets what every answer says: ``client.acked``, ``client.got`` and ``client.listed`` (docs/runs.md).
    """

    __slots__ = (
        "_batches",
        "_buckets",
        "_env",
        "_in_flight",
        "_last_id",
        "_patience_ns",
        "_peer",
        "_postponed",
        "_retries",
        "_room",
        "_servers",
        "_shares",
        "_size",
        "_stream",
        "_throttled",
    )

    def __init__(
        self, env: Env, servers: endpoints.Endpoints, *, shares: bool = False, buckets: Buckets | None = None
    ) -> None:
        """``buckets``: how fast it may send; None: at once."""
        self._env = env
        self._shares = shares
        self._buckets = buckets
        self._throttled = _NO_IDS
        """Ids of requests that wait for a token; a set of its own once there was one."""
        self._patience_ns: Mapping[type[KubernetesObject], int] = _NO_PATIENCE
        self._servers = servers
        self._peer = ""
        """The API server that the stream was last opened to."""
        self._last_id = 0
        self._in_flight: dict[int, _Pending] = {}
        """By id."""
        self._retries = _NO_RETRIES
        """By id, where there are any: of requests in flight that were refused before, how often."""
        self._postponed = 0
        """Requests that wait for their next attempt."""
        self._batches: list[api_pb2.SessionRequest] = []
        """Not yet written, oldest first; the last one is still growing while it has ``_room``."""
        self._room = 0
        self._size = 0
        """Bytes of objects and patches in the growing batch."""
        self._stream = streams.Stream(env, servers, "Session", self, backs_off=False)
        env.awaits(self._awaited)

    def be_impatient(self, kinds: Iterable[type[KubernetesObject]], patience_ns: int) -> None:
        """A request about these is not sent again once it is so old: its caller gets the refusal at that time. As long
        as the server holds a request its answer is waited for."""
        self._patience_ns = _patience(tuple(self._patience_ns.items()), tuple(kinds), patience_ns)

    def next_call(self) -> api_pb2.Call:
        """Room for one request in the growing batch, or, if it may have to wait for a token, outside of it. The caller
        fills it without awaiting anything, then sends it."""
        self._last_id += 1
        if self._buckets is not None:
            return api_pb2.Call(id=self._last_id)
        if self._room == 0:
            # _grow, inlined.
            self._batches.append(api_pb2.SessionRequest())
            self._room = MAX_CALLS_PER_MESSAGE
            self._size = 0
        self._room -= 1
        call = self._batches[-1].calls.add()
        call.id = self._last_id
        return call

    def _grow(self) -> None:
        """Begin a new batch."""
        self._batches.append(api_pb2.SessionRequest())
        self._room = MAX_CALLS_PER_MESSAGE
        self._size = 0

    def send(self, call: api_pb2.Call, message: type[M], mutating: bool, size: int = 0) -> asyncio.Future[M]:
        """The answer to come: an object of class ``message``. ``mutating``: the request changes the cluster. ``size``:
        of the object or patch in it."""
        future = asyncio.get_running_loop().create_future()
        now_ns = self._env.clock.now_ns()
        # As _Pending(…), which is a function in Python.
        pending = tuple.__new__(_Pending, (future, message, mutating, call, now_ns))
        self._in_flight[call.id] = pending
        if self._buckets is not None:
            self._throttle(self._buckets, call, message, size, now_ns)
            return future
        # _complete, inlined.
        self._size += size
        if self._size > MAX_BYTES_PER_MESSAGE:
            self._room = 0
        pump = self._stream.pump
        if pump is None:
            self._stream.wake()
        elif pump.ready is None:
            pump.wake()
        else:  # Pump.wake, inlined
            pump.due += 1
            if pump.due == 1:
                pump.ready.append((pump.flush, (), pump.context))
        return future

    def send_list(self, call: api_pb2.Call, message: type[KubernetesObject]) -> asyncio.Future[ListResult]:
        """The answer to come: a list of objects of class ``message``. The request may delete them."""
        future = asyncio.get_running_loop().create_future()
        self._in_flight[call.id] = _Pending(future, message, False, call, self._env.clock.now_ns())
        self._complete(call, message)
        return future

    def send_commit(self, call: api_pb2.Call) -> asyncio.Future[Commit]:
        """The answer to come: what became of each binding."""
        future = asyncio.get_running_loop().create_future()
        self._in_flight[call.id] = _Pending(future, core_v1_pb2.Pod, True, call, self._env.clock.now_ns())
        self._complete(call, core_v1_pb2.Pod)
        return future

    def _complete(self, call: api_pb2.Call, message: type[KubernetesObject], size: int = 0) -> None:
        """It is filled: in the growing batch, or outside of it until it has a token. ``size``: of the object or patch
        in it."""
        if self._buckets is None:
            self._size += size
            if self._size > MAX_BYTES_PER_MESSAGE:
                self._room = 0
            self._stream.wake()
        else:
            self._throttle(self._buckets, call, message, size, self._env.clock.now_ns())

    def _throttle(
        self, buckets: Buckets, call: api_pb2.Call, message: type[KubernetesObject], size: int, now_ns: int
    ) -> None:
        """Let it wait for its token. A caller that is cancelled meanwhile has used its token up."""
        # Until the set-up is over the clock stands at 0: who waited then would wait for ever.
        if now_ns:
            lists = call.WhichOneof("request") == "list"
            wait_ns = buckets.reserve(_PLURALS.get(message, "custom objects"), now_ns, lists=lists)
            if wait_ns:
                if self._throttled is _NO_IDS:
                    self._throttled = set()
                self._throttled.add(call.id)
                self._env.clock.call_at_ns(now_ns + wait_ns, self._let_in, call, size, wait_ns)
                return
        # _let_in and _grow, inlined: most get their token at once, and travel alone.
        if self._room == 0:
            self._batches.append(api_pb2.SessionRequest())
            self._room = MAX_CALLS_PER_MESSAGE
            self._size = 0
        self._room -= 1
        self._batches[-1].calls.append(call)
        self._size += size
        if self._size > MAX_BYTES_PER_MESSAGE:
            self._room = 0
        pump = self._stream.pump
        if pump is None:
            self._stream.wake()
        elif pump.ready is None:
            pump.wake()
        else:  # Pump.wake, inlined
            pump.due += 1
            if pump.due == 1:
                pump.ready.append((pump.flush, (), pump.context))

    def _let_in(self, call: api_pb2.Call, size: int, waited_ns: int) -> None:
        """It has its token."""
        self._throttled.discard(call.id)
        pending = self._in_flight[call.id]
        if pending.future.done():  # its caller was cancelled
            del self._in_flight[call.id]
            self._retries.pop(call.id, None)
            return
        if waited_ns >= THROTTLING_TOLD_NS:
            self._env.log(
                ClientThrottled(
                    request=call.WhichOneof("request") or "",
                    resource=_PLURALS.get(pending.message, "custom objects"),
                    waited=waited_ns,
                )
            )
        if self._room == 0:
            self._grow()
        self._room -= 1
        self._batches[-1].calls.append(call)
        self._size += size
        if self._size > MAX_BYTES_PER_MESSAGE:
            self._room = 0
        self._stream.wake()

    def _parse_written(self, message: type[M], wire: bytes) -> M:
        if self._shares:
            return shared_objects.OBJECTS.parse(message, shared_objects.revision_of(wire), wire)
        return message.FromString(wire)

    def _awaited(self) -> int:
        return self._postponed + sum(one.message not in _HOUSEKEEPING for one in self._in_flight.values())

    def _postpone(self, pending: _Pending, refusal: errors.ApiError, retries: int) -> None:
        clock = self._env.clock
        self._postponed += 1
        again_ns = clock.now_ns() + refusal.retry_after_s * SECOND_NS
        patience_ns = self._patience_ns.get(pending.message)
        if patience_ns is not None and again_ns > (until_ns := pending.start_ns + patience_ns):
            clock.call_at_ns(max(until_ns, clock.now_ns()), self._give_up, pending, refusal)
        else:
            clock.call_at_ns(again_ns, self._send_again, pending, retries)

    def _give_up(self, pending: _Pending, refusal: errors.ApiError) -> None:
        self._postponed -= 1
        if not pending.future.done():
            pending.future.set_exception(refusal)

    def _send_again(self, pending: _Pending, retries: int) -> None:
        self._postponed -= 1
        if pending.future.done():  # its caller was cancelled
            return
        call = self.next_call()
        call_id = call.id
        call.CopyFrom(pending.call)
        call.id = call_id
        self._in_flight[call_id] = pending._replace(call=call)
        if self._retries is _NO_RETRIES:
            self._retries = {}
        self._retries[call_id] = retries
        self._complete(call, pending.message)

    # --- called by the stream ----------------------------------------------------------------------------------------

    def is_wanted(self) -> bool:
        return bool(self._batches)

    def on_open(self) -> None:
        """What waited is written first."""
        self._peer = self._servers.current

    def take(self) -> api_pb2.SessionRequest | None:
        if not self._batches:
            return None
        batch = self._batches.pop(0)
        if not self._batches:
            self._room = 0
        return batch

    def on_message(self, response: api_pb2.SessionResponse) -> None:
        pop = self._in_flight.pop
        answers: list[tuple[asyncio.Future[Any], Any]] = []
        acks: list[list[Any]] = []
        in_flight = self._in_flight
        for reply in response.replies[:]:
            pending = pop(reply.id, None)
            if pending is None:
                continue
            future, message, mutating, _, start_ns = pending
            retries = self._retries.pop(reply.id, 0) if self._retries else 0
            which = reply.WhichOneof("result")
            answer: Any
            if which == "object":
                wire = reply.object.object
                if message is Scale:
                    # Made of an object; what is stored are other bytes.
                    answer = message.FromString(wire)
                elif mutating:
                    if reply.object.gone and pending.call.WhichOneof("request") != "delete":
                        # The update took away the last finalizer. What it shows was never stored.
                        answer = message.FromString(wire)
                    else:
                        if self._shares:
                            answer = shared_objects.OBJECTS.parse(message, shared_objects.revision_of(wire), wire)
                        else:
                            answer = message.FromString(wire)
                        # _acknowledge, inlined.
                        metadata = answer.metadata
                        version = metadata.resourceVersion
                        if version:
                            namespace, name = metadata.namespace, metadata.name
                            prefix = _PREFIXES[message] or _prefix_of(pending.call)
                            key = f"{prefix}{namespace}/{name}" if namespace else prefix + name
                            acks.append([start_ns, int(version), key, metadata.uid, zlib.crc32(wire)])
                else:
                    answer = message.FromString(wire)
                    version = answer.metadata.resourceVersion
                    self._log_get(pending, version, digest_of(message, [wire], [answer]))
            elif which == "list":
                page = reply.list
                listed = page.items[:]
                if self._shares:
                    items = shared_objects.OBJECTS.parse_list(message, listed)
                else:
                    items = [message.FromString(item) for item in listed]
                digest = digest_of(message, listed, items)
                answer = ListResult(items, page.resource_version, getattr(page, "continue"), digest)
                if pending.call.WhichOneof("request") == "list":
                    self._log_list(pending, answer)
            elif which == "commit":
                results: list[Any] = []
                for one in reply.commit.results:
                    if one.WhichOneof("result") == "object":
                        results.append(self._parse_written(message, one.object))
                        _acknowledge(acks, start_ns, message, results[-1].metadata, one.object)
                    else:
                        results.append(error_of(one.error))
                refused_by = reply.commit.refused_by if reply.commit.HasField("refused_by") else None
                answer = Commit(results, refused_by)
            else:
                answer = error_of(reply.error)
                # A conflict of generated names says when to try again, too, and client-go does not (`checkWait`).
                is_overloaded = answer.code == errors.TooManyRequests.code or answer.code >= 500
                if answer.retry_after_s and is_overloaded and retries < MAX_RETRIES:
                    self._postpone(pending, answer, retries + 1)
                    continue
                if (
                    isinstance(answer, errors.NotFound)
                    and pending.call.get.name == answer.name != ""
                    and message is not Scale
                ):
                    self._log_get(pending, "", 0)
            answers.append((future, answer))
        if not in_flight:
            in_flight.clear()  # its table, too: there are many idle clients
        if acks:
            self._env.log_took(partial(self._acknowledged, response.sent_ns, acks))
        for future, answer in answers:
            if future.done():  # its caller was cancelled
                continue
            if isinstance(answer, errors.ApiError):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _acknowledged(self, sent_ns: int, acks: list[list[Any]], took: Took) -> WritesAcknowledged:
        """``acks``: with the start of each request in place of how long it took."""
        for ack in acks:
            ack[0] = took(ack[0])
        return WritesAcknowledged(server=self._peer, sent=sent_ns, acks=acks)

    def _log_get(self, pending: _Pending, version: str, digest: int) -> None:
        """``version``: empty for an object that does not exist."""
        request = pending.call.get
        self._env.log_took(
            lambda took: GetAnswered(
                server=self._peer,
                resource=request.resource.resource,
                namespace=request.resource.namespace,
                name=request.name,
                version=request.resource_version,
                took=took(pending.start_ns),
                rev=int(version or 0),
                digest=digest,
            ),
        )

    def _log_list(self, pending: _Pending, answer: ListResult) -> None:
        request = pending.call.list
        self._env.log_took(
            lambda took: ListAnswered(
                server=self._peer,
                resource=request.resource.resource,
                namespace=request.resource.namespace,
                label_selector=request.label_selector,
                field_selector=request.field_selector,
                version=request.resource_version,
                limit=request.limit,
                token=getattr(request, "continue"),
                took=took(pending.start_ns),
                rev=int(answer.resource_version),
                count=len(answer.items),
                next=answer.continue_token,
                digest=answer.digest,
            ),
        )

    def on_lost(self, peer: str, why: str) -> None:
        """A request that no server takes would break every connection: its caller is told so."""
        # In the simulation, of an actor that relays calls, and of gRPC ("connect: Connection refused (111)").
        lost = errors.ConnectionRefused if "onnection refused" in why else errors.ConnectionLost
        unsent = self._throttled.union(call.id for batch in self._batches for call in batch.calls)
        for call_id in [call_id for call_id in self._in_flight if call_id not in unsent]:
            future, _, _, call, _ = self._in_flight.pop(call_id)
            self._retries.pop(call_id, None)
            if future.done():
                continue
            if call.ByteSize() > ends.MAX_REQUEST_BYTES:
                future.set_exception(
                    errors.RequestEntityTooLarge(f"Request entity too large: limit is {ends.MAX_REQUEST_BYTES}")
                )
            else:
                future.set_exception(lost(f"the connection to {peer} was lost: {why}"))
