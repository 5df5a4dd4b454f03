"""The gRPC service: unary calls for people, the batched Session stream and the multiplexed Watch stream for actors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from types import MethodType
from typing import Any, cast

import grpc
from google.protobuf.message import Message

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import errors, flows
from kemu.emulated.apiserver.authorization import attributes, requesters, reviews
from kemu.emulated.apiserver.fairness.fairness import Fairness
from kemu.emulated.apiserver.fairness.levels import Ticket
from kemu.emulated.apiserver.registry import options
from kemu.emulated.apiserver.registry.kinds import Kinds
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.verbs import MAX_BODY_BYTES, Answer, Requests
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.apiserver.watch.fanout import BYTES_PER_MESSAGE, Fanout, Stream, Watcher
from kemu.emulated.apiserver.watch.feed import Feed
from kemu.emulated.objects.caches import text_cache
from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import Clock, Env
from kemu.runtime.rpc import pumps
from kemu.runtime.runlog.events import RequestThrottled

ACTOR_KEY = "kemu-actor"
"""Metadata key under which a caller says its name."""


AS_KEY = "kemu-as"
"""Metadata key under which a caller says as which user it acts (``Impersonate-User``)."""

AS_GROUP_KEY = "kemu-as-group"
AS_BESIDE_KEY = "kemu-as-beside"
"""JSON: the uid of the user and its extra."""
"""And of which groups; may come several times."""

UNREAD_MESSAGES = 16
"""Messages of about a MiB each with answers that a client does not read. Then nothing more is read from it."""
UNREAD_BYTES = 64 << 20
"""Bytes of answers that a client does not read, on all of its Sessions. Then nothing more is read from those, and what
it has asked already is refused."""
MAX_WATCHES = 10_000
"""Most watches of one Watch stream."""
IDLE_TASKS = 100
"""That wait for a call to serve."""
MAX_STREAMS = 1_000
"""Most streams of one client: Watch and Session."""

_READS = ("get", "list")

Delay = Callable[[str], float]
"""From a client's name to seconds."""


class Client:
    """What all calls of one client hold together."""

    __slots__ = ("streams", "unread")

    def __init__(self) -> None:
        self.streams = 0
        """Watch and Session calls that are open."""
        self.unread = 0
        """Bytes of answers on its Sessions."""


class Replies:
    """What is on its way back on one Session: the replies of one tick of the event loop go in one message."""

    __slots__ = (
        "_bytes", "_clock", "_current", "_drained", "_full", "_reader", "_taken", "_unread", "by", "client",
        "in_flight", "pump",
    )  # fmt: skip

    def __init__(self, clock: Clock, client: Client, by: str) -> None:
        self._clock = clock
        self.client = client
        self.by = by
        """The actor whose Session it is."""
        self._unread = 0
        """Bytes of answers."""
        self._taken = 0
        """How many of these are being written."""
        self.pump: pumps.Pump | None = None
        """Writes what :meth:`take` gives."""
        self.in_flight = 0
        """Calls that have no reply yet."""
        self._reader: asyncio.Future[None] | None = None
        self._bytes = 0
        self._current: api_pb2.SessionResponse | None = None
        self._full: list[
            tuple[api_pb2.SessionResponse, int]
        ] = []  # hardly ever more than one; an empty deque takes ten times the memory
        """Messages and their sizes."""
        self._drained: asyncio.Future[None] | None = None

    def add(self, call_id: int, answer: Answer | kemu_errors.ApiError) -> None:
        self.in_flight -= 1
        if self._reader is not None:
            self._wake_reader()
        if self._current is None:
            self._current = api_pb2.SessionResponse()
            pump = self.pump
            if pump is not None:
                if pump.ready is None:
                    pump.wake()
                else:  # Pump.wake, inlined
                    pump.due += 1
                    if pump.due == 1:
                        pump.ready.append((pump.flush, (), pump.context))
        reply = self._current.replies.add()
        reply.id = call_id
        if isinstance(answer, bytes):
            reply.object.object = answer
            size = len(answer)
        elif isinstance(answer, api_pb2.ObjectResponse):
            reply.object.CopyFrom(answer)
            size = len(answer.object)
        elif isinstance(answer, kemu_errors.ApiError):
            reply.error = errors.encode(answer)
            size = len(reply.error)
        elif isinstance(answer, api_pb2.CommitResponse):
            reply.commit.CopyFrom(answer)
            size = answer.ByteSize()
        else:
            reply.list.CopyFrom(answer)
            size = answer.ByteSize()
        self._bytes += size
        self._unread += size
        self.client.unread += size
        if self._bytes >= BYTES_PER_MESSAGE:
            self._full.append((self._current, self._bytes))
            self._current, self._bytes = None, 0

    def _is_full(self) -> bool:
        """Whether so many calls are under way, or answers unread, that no more may be read."""
        return (
            self.in_flight > flows.UNDER_WAY_LIMIT
            or len(self._full) > UNREAD_MESSAGES
            or (self.client.unread > UNREAD_BYTES and self._unread > 0)
        )

    def check(self) -> None:
        """Raises TooManyRequests where there are too many answers already that the client does not read, here and
        elsewhere."""
        if self.client.unread > UNREAD_BYTES and self._unread > 0:
            raise kemu_errors.TooManyRequests("the client does not read its answers", retry_after_s=1)

    def pause(self) -> asyncio.Future[None] | None:
        """What to wait for before more calls are read."""
        if self.in_flight <= flows.UNDER_WAY_LIMIT and not self._full and self.client.unread <= UNREAD_BYTES:
            return None  # as nearly always
        if not self._is_full():
            return None
        self._reader = asyncio.get_running_loop().create_future()
        return self._reader

    def take(self) -> api_pb2.SessionResponse | None:
        """The next message to write, or None."""
        if self._full:
            message, self._taken = self._full.pop(0)
        elif self._current is not None:
            message, self._current = self._current, None
            self._taken, self._bytes = self._bytes, 0
        else:
            self._tell_drained()
            return None
        message.sent_ns = self._clock.now_ns()
        return message

    def written(self) -> None:
        """What was taken is on its way."""
        self._unread -= self._taken
        self.client.unread -= self._taken
        self._taken = 0
        if self._reader is not None:
            self._wake_reader()
        if self._drained is not None and self._current is None and not self._full:
            self._tell_drained()

    def _tell_drained(self) -> None:
        if self._drained is not None and self.in_flight == 0:
            self._drained.set_result(None)
            self._drained = None

    def close(self) -> None:
        """What is left will not be read."""
        self.client.unread -= self._unread
        self._unread = 0

    async def drained(self) -> None:
        """Wait until every call has its answer, and all answers are on their way."""
        self._drained = asyncio.get_running_loop().create_future()
        if self.pump is not None:
            self.pump.wake()
        await self._drained

    def _wake_reader(self) -> None:
        reader = self._reader
        if reader is not None and not self._is_full():
            self._reader = None
            if not reader.done():
                reader.set_result(None)


Work = tuple[api_pb2.Call, str, Replies, Ticket | None]
"""A call of a Session, its client, where the reply goes, and the seats that it has; None: one of the only level."""


class Service(api_pb2_grpc.ApiServicer):  # type: ignore[misc]
    """No call is served before :meth:`open`."""

    def __init__(
        self,
        env: Env,
        requests: Requests,
        storage: Storage,
        cache: WatchCache,
        feed: Feed,
        fanout: Fanout,
        kinds: Kinds,
        *,
        seats: int = flows.SEATS,
        queue_limit: int = flows.QUEUE_LIMIT,
    ) -> None:
        self.works: Callable[[], float] | None = None
        """Draws the seconds of a core that a request takes; None: none."""
        self.delays: list[Delay] = []
        """Each says how many seconds a request of a client keeps its seat before it is carried out."""
        self.streams: dict[Stream, asyncio.Task[Any]] = {}
        """The Watch streams that are open, and who serves them."""
        self._starting: dict[tuple[Stream, int], Watcher] = {}
        """Watches that wait for a conversion webhook, by watch id."""
        self._clients: dict[str, Client] = {}
        """Those that have streams, by name."""
        self._env = env
        self._requests = requests
        self._storage = storage
        self._cache = cache
        self._feed = feed
        self._fanout = fanout
        self._kinds = kinds
        self._is_open = asyncio.Event()
        self._idle: list[asyncio.Future[Work]] = []
        """One for each task that waits for a call to serve."""
        fanout.on_stalled = self.cut
        self._flows = flows.Flows(env, seats, queue_limit, self._expired)
        """What waits in it for a seat: calls of Sessions with their client and Replies."""
        self._fairness = Fairness(env, seats, requests.authorizer, cache, fanout, self._begin_late, self._refuse_late)
        """The same of a cluster with FlowSchemas."""
        self._take_next, self._change = self._take, self._change_watches
        """Once for all streams."""
        self._late: dict[tuple[Stream, int], asyncio.Task[None]] = {}
        """Watches that wait for seats."""

    def open(self) -> None:
        """The watch cache is filled."""
        self._is_open.set()

    # --- unary -------------------------------------------------------------------------------------------------------

    async def Get(self, request: api_pb2.GetRequest, context: grpc.aio.ServicerContext) -> api_pb2.ObjectResponse:
        return await self._object("get", request, context)

    async def List(self, request: api_pb2.ListRequest, context: grpc.aio.ServicerContext) -> api_pb2.ListResponse:
        return cast(api_pb2.ListResponse, await self._answer("list", request, context))

    async def Create(self, request: api_pb2.CreateRequest, context: grpc.aio.ServicerContext) -> api_pb2.ObjectResponse:
        return await self._object("create", request, context)

    async def Update(self, request: api_pb2.UpdateRequest, context: grpc.aio.ServicerContext) -> api_pb2.ObjectResponse:
        return await self._object("update", request, context)

    async def UpdateStatus(
        self, request: api_pb2.UpdateStatusRequest, context: grpc.aio.ServicerContext
    ) -> api_pb2.ObjectResponse:
        return await self._object("update_status", request, context)

    async def Patch(self, request: api_pb2.PatchRequest, context: grpc.aio.ServicerContext) -> api_pb2.ObjectResponse:
        return await self._object("patch", request, context)

    async def Delete(self, request: api_pb2.DeleteRequest, context: grpc.aio.ServicerContext) -> api_pb2.ObjectResponse:
        return await self._object("delete", request, context)

    async def DeleteCollection(
        self, request: api_pb2.DeleteCollectionRequest, context: grpc.aio.ServicerContext
    ) -> api_pb2.ListResponse:
        return cast(api_pb2.ListResponse, await self._answer("delete_collection", request, context))

    async def Bind(self, request: api_pb2.BindRequest, context: grpc.aio.ServicerContext) -> api_pb2.ObjectResponse:
        return await self._object("bind", request, context)

    async def Evict(self, request: api_pb2.EvictRequest, context: grpc.aio.ServicerContext) -> api_pb2.ObjectResponse:
        return await self._object("evict", request, context)

    async def Commit(self, request: api_pb2.CommitRequest, context: grpc.aio.ServicerContext) -> api_pb2.CommitResponse:
        return cast(api_pb2.CommitResponse, await self._answer("commit", request, context))

    async def _object(
        self, verb: str, request: attributes.Request, context: grpc.aio.ServicerContext
    ) -> api_pb2.ObjectResponse:
        answer = await self._answer(verb, request, context)
        return answer if isinstance(answer, api_pb2.ObjectResponse) else api_pb2.ObjectResponse(object=answer)

    async def _answer(self, verb: str, request: attributes.Request, context: grpc.aio.ServicerContext) -> Any:
        if not self._is_open.is_set():
            await self._is_open.wait()
        by = await self._identify(context)
        beside = None
        for key, value in context.invocation_metadata():
            if key == AS_BESIDE_KEY:
                beside = str(value)
        try:
            ticket = None
            try:
                if self._fairness.is_on:
                    ticket = self._fairness.enter(by, verb, request, None)
                    if ticket.is_waiting:
                        await self._fairness.turn(ticket)
                else:
                    await self._flows.seat(by)
            except kemu_errors.TooManyRequests as error:
                self._log_throttled(by, verb, error)
                raise
            try:
                if self.delays or self.works is not None:
                    await self._take_time(by)
                answering = self._requests.answer(verb, request, by)
                return await (answering if beside is None else _knowing(beside, answering))
            finally:
                if ticket is not None:
                    ticket.level.leave(ticket)
                else:
                    self._go_on()
        except kemu_errors.ApiError as error:
            await context.abort(errors.grpc_code(error), error.message, errors.trailing_metadata(error))

    async def _identify(self, context: grpc.aio.ServicerContext) -> str:
        """Who calls, once for each call or stream: an actor, or one that acts as another user."""
        by = acts_as = ""
        groups: list[str] = []
        for key, value in context.invocation_metadata():
            if key == ACTOR_KEY and not by:
                by = str(value)
            elif key == AS_KEY:
                acts_as = str(value)
            elif key == AS_GROUP_KEY:
                groups.append(str(value))
        if not acts_as:
            return by
        try:
            return self._requests.authorizer.acting_as(by, acts_as, groups)
        except kemu_errors.ApiError as error:
            await context.abort(errors.grpc_code(error), error.message, errors.trailing_metadata(error))
        raise AssertionError("an aborted call goes on")

    async def _enter(self, by: str, context: grpc.aio.ServicerContext) -> Client:
        """A client opens a stream."""
        client = self._clients.get(by)
        if client is None:
            client = self._clients[by] = Client()
        if client.streams >= MAX_STREAMS:
            error = kemu_errors.TooManyRequests(f"a client may have {MAX_STREAMS} streams")
            await context.abort(errors.grpc_code(error), error.message, errors.trailing_metadata(error))
        client.streams += 1
        return client

    def _leave(self, by: str, client: Client) -> None:
        client.streams -= 1
        if not client.streams:
            del self._clients[by]

    # --- reviews -----------------------------------------------------------------------------------------------------

    async def Review(self, request: api_pb2.ReviewRequest, context: grpc.aio.ServicerContext) -> api_pb2.ReviewResponse:
        await self._is_open.wait()
        by = await self._identify(context)
        try:
            return reviews.review(self._requests.authorizer, by, request)
        except kemu_errors.ApiError as error:
            await context.abort(errors.grpc_code(error), error.message, errors.trailing_metadata(error))
        raise AssertionError("an aborted call goes on")

    async def Rules(self, request: api_pb2.RulesRequest, context: grpc.aio.ServicerContext) -> api_pb2.RulesResponse:
        await self._is_open.wait()
        return reviews.rules(self._requests.authorizer, await self._identify(context), request.namespace)

    async def Levels(self, request: api_pb2.LevelsRequest, context: grpc.aio.ServicerContext) -> api_pb2.LevelsResponse:
        await self._is_open.wait()
        return self._fairness.told()

    async def Admit(self, request: api_pb2.AdmitRequest, context: grpc.aio.ServicerContext) -> api_pb2.AdmitResponse:
        await self._is_open.wait()
        by = await self._identify(context)
        try:
            stated = [value for key, value in context.invocation_metadata() if key == AS_BESIDE_KEY]
            admitting = self._requests.admit(by, request)
            answer: api_pb2.AdmitResponse = await (_knowing(str(stated[0]), admitting) if stated else admitting)
            return answer
        except kemu_errors.ApiError as error:
            await context.abort(errors.grpc_code(error), error.message, errors.trailing_metadata(error))
        raise AssertionError("an aborted call goes on")

    # --- Session -----------------------------------------------------------------------------------------------------

    async def Session(self, request_iterator: AsyncIterator[Message], context: grpc.aio.ServicerContext) -> None:
        await self._is_open.wait()
        by = await self._identify(context)
        client = await self._enter(by, context)
        replies = Replies(self._env.clock, client, by)
        pump = pumps.Pump(self._env.spawn, context, replies.take, f"replies to {by}", replies.written)
        replies.pump = pump

        try:
            # Not functools.partial, which takes four times the memory: there are many streams.
            await pumps.each(context, MethodType(self._take_next, replies), replies.pause)
            # The client will ask nothing more: answer what it has asked.
            await replies.drained()
        finally:
            pump.stop()
            replies.close()
            self._leave(by, client)
            self._flows.forget(by, lambda work: isinstance(work, tuple) and work[2] is replies)
            self._fairness.forget(lambda work: isinstance(work, tuple) and work[2] is replies)

    def _take(self, replies: Replies, batch: api_pb2.SessionRequest) -> None:
        """What has come on a Session."""
        by = replies.by
        seats, idle = self._flows, self._idle
        is_fair = self._fairness.is_on
        for call in batch.calls[:]:
            replies.in_flight += 1
            try:
                work: Work = (call, by, replies, None)
                if is_fair and (verb := call.WhichOneof("request")) is not None:
                    ticket = self._fairness.enter(by, verb, getattr(call, verb), work)
                    if ticket.is_waiting:
                        continue
                    work = (call, by, replies, ticket)
                elif seats.free:  # Flows.enter, and _begin, inlined
                    seats.free -= 1
                else:
                    seats.enter(by, work)
                    continue
                while idle:
                    waiting = idle.pop()
                    if not waiting.done():
                        waiting.set_result(work)
                        break
                else:
                    self._env.spawn(self._serve(work), "call")
            except kemu_errors.TooManyRequests as error:
                self._refuse(call, by, replies, error)

    def _begin(self, work: Work) -> None:
        """Serve a call that has a seat, in the next step of a task that waits for one, or of a new one."""
        while self._idle:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(work)
                return
        self._env.spawn(self._serve(work), "call")

    def _begin_late(self, work: Work, ticket: Ticket) -> None:
        """Of a cluster with FlowSchemas: a call has its seats."""
        self._begin((work[0], work[1], work[2], ticket))

    def _refuse_late(self, work: Work, error: kemu_errors.TooManyRequests) -> None:
        self._refuse(work[0], work[1], work[2], error)

    async def _serve(self, work: Work) -> None:
        """Serve one call after the other."""
        seats = self._flows
        while True:
            call, by, replies, ticket = work
            verb = call.WhichOneof("request")
            request = getattr(call, verb) if verb is not None else None
            try:
                if replies.client.unread > UNREAD_BYTES:
                    replies.check()
                if self.delays or self.works is not None:
                    await self._take_time(by)
                answer = await self._requests.answer(verb, request, by)
                if verb in _READS:
                    # Hundreds of them may have been under way; what has changed nothing can still be refused.
                    replies.check()
            except kemu_errors.ApiError as error:
                replies.add(call.id, error)
            else:
                replies.add(call.id, answer)
            if ticket is not None:
                ticket.level.leave(ticket)
                following = None
            elif seats.turns or seats.timer is not None:
                following = seats.leave()
            else:  # Flows.leave, inlined: nobody waits
                following = None
                seats.free += 1
            if following is None:
                if len(self._idle) >= IDLE_TASKS:
                    return
                # While this waits, the call is not needed.
                del call, replies, request, ticket
                answer = work = None  # type: ignore[assignment]
                waiting: asyncio.Future[Work] = asyncio.get_running_loop().create_future()
                self._idle.append(waiting)
                following = await waiting
            work = following

    async def _take_time(self, by: str) -> None:
        if self.works is not None:
            await self._env.work(self.works())
        if self.delays:
            await self._env.clock.sleep(sum(delay(by) for delay in self.delays))

    def _go_on(self) -> None:
        """A unary call is over: its seat goes to the next one."""
        following = self._flows.leave()
        if following is not None:
            self._begin(following)

    def _expired(self, waiting: flows.Waiting, error: kemu_errors.TooManyRequests) -> None:
        call, by, replies, _ = waiting.work
        self._refuse(call, by, replies, error)

    def _refuse(self, call: api_pb2.Call, by: str, replies: Replies, error: kemu_errors.TooManyRequests) -> None:
        self._log_throttled(by, call.WhichOneof("request") or "", error)
        replies.add(call.id, error)

    def _log_throttled(self, by: str, verb: str, error: kemu_errors.TooManyRequests) -> None:
        self._env.log(RequestThrottled(by=by, verb=verb, retry_after_s=error.retry_after_s))

    # --- Watch -------------------------------------------------------------------------------------------------------

    async def Watch(self, request_iterator: AsyncIterator[Message], context: grpc.aio.ServicerContext) -> None:
        await self._is_open.wait()
        by = await self._identify(context)
        client = await self._enter(by, context)
        stream = self._fanout.open(by)
        task = asyncio.current_task()
        assert task is not None
        self.streams[stream] = task
        stream.pump = pump = pumps.Pump(self._env.spawn, context, stream.take, f"events to {stream.by}", stream.written)

        try:
            await pumps.each(context, MethodType(self._change, stream), stream.pause)
            # The client will ask for no other watches, but still listens to those it has.
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if stream in self.streams:
                raise
            task.uncancel()  # see cut
        finally:
            self.streams.pop(stream, None)
            pump.stop()
            self._leave(by, client)
            self._fanout.close(stream)

    def _change_watches(self, stream: Stream, request: api_pb2.WatchRequest) -> None:
        which = request.WhichOneof("request")
        if which == "create":
            if self._fairness.is_on:
                self._start_in_turn(stream, request.create)
            else:
                self._start_watch(stream, request.create)
        elif which == "cancel":
            watcher = stream.watchers.get(request.cancel.watch_id)
            if watcher is not None:
                self._fanout.stop(watcher)
            elif (late := self._late.pop((stream, request.cancel.watch_id), None)) is not None:
                late.cancel()
            elif self._starting:
                self._starting.pop((stream, request.cancel.watch_id), None)

    def cut(self, stream: Stream) -> None:
        """End a Watch stream, as kube-apiserver does from time to time; its client may come again."""
        task = self.streams.pop(stream, None)
        if task is not None:
            task.cancel()

    def _start_in_turn(self, stream: Stream, create: api_pb2.WatchCreate) -> None:
        """With FlowSchemas, a watch takes seats until it has begun."""
        place = stream, create.watch_id
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            ticket = self._fairness.enter(stream.by, "watch", create, turn)
        except kemu_errors.TooManyRequests as error:
            self._log_throttled(stream.by, "watch", error)
            stream.add_error(create.watch_id, error)
            return
        if not ticket.is_waiting:
            self._start_watch(stream, create)
            ticket.level.leave(ticket)
            return

        async def start() -> None:
            try:
                await turn
            except asyncio.CancelledError:
                ticket.level.give_up(ticket)
                raise
            except kemu_errors.TooManyRequests as error:
                self._log_throttled(stream.by, "watch", error)
                if stream in self.streams:
                    stream.add_error(create.watch_id, error)
                return
            finally:
                self._late.pop(place, None)
            if stream in self.streams:
                self._start_watch(stream, create)
            ticket.level.leave(ticket)

        self._late[place] = self._env.spawn(start(), f"watch of {stream.by}")

    def _start_watch(self, stream: Stream, create: api_pb2.WatchCreate) -> None:
        start_ns = self._env.clock.now_ns()
        try:
            if create.ByteSize() > MAX_BODY_BYTES:
                raise errors.entity_too_large(MAX_BODY_BYTES)
            if len(stream.watchers) >= MAX_WATCHES:
                raise kemu_errors.TooManyRequests(f"a stream may have {MAX_WATCHES} watches")
            if create.watch_id in stream.watchers or (stream, create.watch_id) in self._starting:
                raise kemu_errors.BadRequest(f"there is a watch {create.watch_id} already")
            self._requests.authorizer.check(stream.by, "watch", create)
            options.check_watch(create)
            where = create.resource
            selection = self._kinds.selection(where, create.label_selector, create.field_selector)
            since = options.version_of_watch(create.resource_version)
            begins = create.send_initial_events if create.HasField("send_initial_events") else not since
            collection = selection.converted or self._cache.collections[selection.resource.plural]
            watcher = Watcher(stream, create.watch_id, selection, collection, create.allow_bookmarks)
            if selection.converted is not None:
                self._starting[stream, create.watch_id] = watcher
                self._env.spawn(self._start_converted(watcher, create, since, begins=begins), f"watch of {stream.by}")
                return
            if create.acknowledge:
                stream.add(create.watch_id, api_pb2.WatchEvent.STARTED, 0, b"")
            if begins:
                self._fanout.start(watcher, 0)
            elif since:
                self._fanout.start(watcher, since)
        except kemu_errors.ApiError as error:
            stream.add_error(create.watch_id, error)
            if not isinstance(error, kemu_errors.Gone):
                self._requests.log_refusal("watch", create, stream.by, start_ns, error)
            return
        if begins:
            self._end_initial(watcher, since)
        elif not since:
            self._env.spawn(self._start_from_now(watcher), f"watch of {stream.by}")

    def _end_initial(self, watcher: Watcher, since: int | None) -> None:
        """The present state is told; at the latest when the cache is as new as the client wants."""
        if since is not None and since <= self._cache.revision:
            self._fanout.end_of_initial(watcher)
        else:
            self._env.spawn(self._bookmark_when_fresh(watcher, since), f"bookmark for {watcher.stream.by}")

    async def _start_converted(
        self, watcher: Watcher, create: api_pb2.WatchCreate, since: int | None, *, begins: bool
    ) -> None:
        """A watch of objects that a webhook has to convert first."""
        stream, place = watcher.stream, (watcher.stream, watcher.watch_id)
        start_ns = self._env.clock.now_ns()
        try:
            revision = since or 0
            if not begins and not since:
                revision = await self._storage.revision()
                await self._feed.until(revision)
            await watcher.collection.catch_up()
            if self._starting.get(place) is not watcher or stream not in self.streams:
                return
            if create.acknowledge:
                stream.add(create.watch_id, api_pb2.WatchEvent.STARTED, 0, b"")
            self._fanout.start(watcher, 0 if begins else revision)
            watcher.collection.watched()
        except kemu_errors.ApiError as error:
            if self._starting.get(place) is watcher and stream in self.streams:
                stream.add_error(create.watch_id, error)
                if not isinstance(error, kemu_errors.Gone):
                    self._requests.log_refusal("watch", create, stream.by, start_ns, error)
            return
        finally:
            if self._starting.get(place) is watcher:
                del self._starting[place]
        if begins:
            self._end_initial(watcher, since)

    async def _bookmark_when_fresh(self, watcher: Watcher, since: int | None) -> None:
        """The initial state is complete when the watcher has been told of all that the store had when it asked, or at
        ``since``."""
        try:
            if since is None:
                await self._feed.until(await self._storage.revision(), patient=True)
            else:
                await self._feed.until(since)
            if watcher.collection.converts:
                await watcher.collection.catch_up()
        except kemu_errors.ApiError as error:
            if watcher.stream.watchers.get(watcher.watch_id) is watcher:
                self._fanout.end(watcher, error)
            return
        if watcher.stream.watchers.get(watcher.watch_id) is watcher:
            self._fanout.end_of_initial(watcher)

    async def _start_from_now(self, watcher: Watcher) -> None:
        """No initial state, and no revision to begin at: that of the store, as ``sendInitialEvents=false`` asks."""
        stream = watcher.stream
        try:
            revision = await self._storage.revision()
            if stream in self.streams and watcher.watch_id not in stream.watchers:
                self._fanout.start(watcher, revision)
        except kemu_errors.ApiError as error:
            stream.add_error(watcher.watch_id, error)


@text_cache(1024)
def _beside(text: str) -> requesters.Beside:
    uid, extra = json.loads(text)
    return requesters.Beside(uid, tuple((key, tuple(values)) for key, values in extra))


async def _knowing(beside: str, answering: Awaitable[Any]) -> Any:
    """Carry out a request, with what its metadata tell of the user beside the name and groups."""
    before = requesters.BESIDE.set(_beside(beside))
    try:
        return await answering
    finally:
        requesters.BESIDE.reset(before)
