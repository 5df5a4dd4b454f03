"""kemu's API service, carried out by a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Generic, TypeVar, cast

import grpc
from google.protobuf.message import Message

from kemu import errors
from kemu.emulated.apiserver import errors as refusals
from kemu.emulated.bridge import answers, connections, requested, requests, shared_watches, tenants, watches
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2
from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import Env
from kemu.runtime.host import tokens
from kemu.runtime.rpc import pumps

_READS_OF_INFORMERS = ("list",)


R = TypeVar("R", api_pb2.SessionResponse, api_pb2.WatchResponse)
Answer = api_pb2.ObjectResponse | api_pb2.ListResponse | api_pb2.CommitResponse


class Outbox(Generic[R]):
    """What is on its way to one client; all of one tick of the loop goes in one message."""

    def __init__(self, make: Callable[[], R]) -> None:
        self._make: Callable[[], R] = make
        self._message: R | None = None
        self.wake: Callable[[], None] = lambda: None

    @property
    def message(self) -> R:
        """The growing message."""
        if self._message is None:
            self._message = self._make()
            self.wake()
        return self._message

    def take(self) -> R | None:
        message, self._message = self._message, None
        return message


class Service(api_pb2_grpc.ApiServicer):  # type: ignore[misc]
    """``on_trouble`` is told when the cluster cannot be read or watched. ``shares``: plurals of collections that all
    clients together watch once (:data:`kemu.emulated.bridge.shared_watches.PARTS`). ``tenant``: of whom all clients
    are; None: the cluster is theirs."""

    def __init__(
        self,
        env: Env,
        connection: connections.Connection,
        on_trouble: Callable[[str], object],
        shares: Sequence[str] = (),
        tenant: tenants.Tenant | None = None,
    ) -> None:
        self._env = env
        self._tenant = tenant
        self._connection = connection
        self._on_trouble = on_trouble
        self._is_open = asyncio.Event()
        self._shared = {
            plural: shared_watches.SharedWatch(env, connection, plural, on_trouble, tenant) for plural in shares
        }

    def open(self) -> None:
        """The connection is configured."""
        self._is_open.set()

    async def answer(self, verb: str, request: Message | None) -> Answer:
        """Raises Refused."""
        if self._tenant is None or request is None:
            return await self._ask(verb, request)
        start_ns = self._env.clock.now_ns()
        try:
            asked = request if isinstance(request, api_pb2.CommitRequest) else self._tenant.request(verb, request)
            answer = self._tenant.answer(verb, asked, await self._ask(verb, asked))
        except errors.ApiError as error:
            refused = _refused(error)
        except answers.Refused as error:
            refused = error
            refused.status.message = refused.status.message.replace(self._tenant.prefix, "")
        else:
            self._tell(verb, request, start_ns, answer)
            if isinstance(asked, api_pb2.CreateRequest) and asked.resource.resource == "namespaces":
                namespace = core_v1_pb2.Namespace.FromString(asked.object)
                await tenants.account_made(self._connection, namespace.metadata.name)
            return answer
        self._tell(verb, request, start_ns, refused.status)
        raise refused

    def _tell(self, verb: str, request: Message, start_ns: int, came: Answer | meta_v1_pb2.Status) -> None:
        """What a cluster's own audit log would say: nobody shows it to a tenant."""
        event = requested.event_of(verb, request, connections.CALLER.get(), start_ns, came)
        if event is not None:
            self._env.log(event)

    async def _ask(self, verb: str, request: Message | None) -> Answer:
        """Raises Refused."""
        try:
            if isinstance(request, api_pb2.CommitRequest):
                return await self._commit(request)
            made = requests.of(verb, request)
        except errors.ApiError as error:
            raise _refused(error) from None
        try:
            answer = answers.of(made, await self._connection.send(made))
        except connections.Unreachable as error:
            if verb in _READS_OF_INFORMERS:
                self._on_trouble(str(error))
            raise answers.Refused(answers.unreachable(str(error))) from error
        except answers.Refused as refused:
            if verb not in _READS_OF_INFORMERS:
                raise
            status = answers.passing(refused.status)
            if status.reason == "ServiceUnavailable":
                self._on_trouble(status.message)
            raise answers.Refused(status) from None
        return answer

    def _shared_by(self, asked: api_pb2.WatchCreate) -> shared_watches.SharedWatch | None:
        """Lists go to the real server: what is shared may be behind what the client has seen."""
        shared = self._shared.get(asked.resource.resource)
        serves = shared is not None and shared.serves(asked.resource, asked.field_selector, asked.label_selector)
        return shared if serves else None

    async def _commit(self, request: api_pb2.CommitRequest) -> api_pb2.CommitResponse:
        """Bindings one after the other; a real API server knows no transactions."""
        if request.all_or_nothing:
            raise errors.BadRequest("a real API server binds pods one by one, not all or nothing")
        response = api_pb2.CommitResponse()
        for binding in request.bindings:
            result = response.results.add()
            try:
                answer = await self.answer("bind", binding)
                assert isinstance(answer, api_pb2.ObjectResponse)
                result.object = answer.object
            except answers.Refused as refused:
                result.error = refused.status.SerializeToString()
        return response

    # --- Session -----------------------------------------------------------------------------------------------------

    async def Session(self, request_iterator: AsyncIterator[Message], context: grpc.aio.ServicerContext) -> None:
        await self._is_open.wait()
        by = _caller(context)
        outbox = Outbox(api_pb2.SessionResponse)
        pump = pumps.Pump(self._env.spawn, context, outbox.take, "replies")
        outbox.wake = pump.wake
        under_way: dict[asyncio.Task[Any], None] = {}
        drained = asyncio.Event()

        def done(task: asyncio.Task[Any]) -> None:
            under_way.pop(task, None)
            if not under_way:
                drained.set()

        def handle(batch: api_pb2.SessionRequest) -> None:
            for call in batch.calls[:]:
                task = self._env.spawn(self._serve(call, by, outbox), "call")
                under_way[task] = None
                task.add_done_callback(done)

        try:
            await pumps.each(context, handle)
            while under_way:
                drained.clear()
                await drained.wait()
        finally:
            pump.stop()

    async def _serve(self, call: api_pb2.Call, by: str, outbox: Outbox[api_pb2.SessionResponse]) -> None:
        connections.CALLER.set(by)
        verb = call.WhichOneof("request") or ""
        try:
            answer = await self.answer(verb, getattr(call, verb, None))
        except answers.Refused as refused:
            outbox.message.replies.add(id=call.id, error=refused.status.SerializeToString())
            return
        reply = outbox.message.replies.add(id=call.id)
        if isinstance(answer, api_pb2.ObjectResponse):
            reply.object.CopyFrom(answer)
        elif isinstance(answer, api_pb2.ListResponse):
            reply.list.CopyFrom(answer)
        else:
            reply.commit.CopyFrom(answer)
        outbox.message.sent_ns = self._env.clock.now_ns()

    # --- Watch -------------------------------------------------------------------------------------------------------

    async def Watch(self, request_iterator: AsyncIterator[Message], context: grpc.aio.ServicerContext) -> None:
        await self._is_open.wait()
        outbox = Outbox(api_pb2.WatchResponse)
        pump = pumps.Pump(self._env.spawn, context, outbox.take, "events")
        outbox.wake = pump.wake
        tasks: dict[int, asyncio.Task[Any]] = {}

        def hand(event: api_pb2.WatchEvent) -> None:
            outbox.message.events.append(event)

        def stop(watch_id: int) -> None:
            task = tasks.pop(watch_id, None)
            if task is not None:
                task.cancel()

        def handle(request: api_pb2.WatchRequest) -> None:
            if request.WhichOneof("request") == "create":
                create = request.create
                stop(create.watch_id)
                shared = self._shared_by(create)
                if shared is not None:
                    run = shared.watch(create, hand)
                else:
                    tenant = self._tenant
                    run = watches.Watch(self._env, self._connection, create, hand, self._on_trouble, tenant).run()
                tasks[create.watch_id] = self._env.spawn(run, f"watch {create.resource.resource}")
            else:
                stop(request.cancel.watch_id)

        try:
            await pumps.each(context, handle)
            await asyncio.get_running_loop().create_future()
        finally:
            pump.stop()
            for watch_id in list(tasks):
                stop(watch_id)

    # --- unary -------------------------------------------------------------------------------------------------------

    async def Get(self, request: api_pb2.GetRequest, context: grpc.aio.ServicerContext) -> api_pb2.ObjectResponse:
        return cast(api_pb2.ObjectResponse, await self._unary("get", request, context))

    async def List(self, request: api_pb2.ListRequest, context: grpc.aio.ServicerContext) -> api_pb2.ListResponse:
        return cast(api_pb2.ListResponse, await self._unary("list", request, context))

    async def Create(self, request: api_pb2.CreateRequest, context: grpc.aio.ServicerContext) -> api_pb2.ObjectResponse:
        return cast(api_pb2.ObjectResponse, await self._unary("create", request, context))

    async def Update(self, request: api_pb2.UpdateRequest, context: grpc.aio.ServicerContext) -> api_pb2.ObjectResponse:
        return cast(api_pb2.ObjectResponse, await self._unary("update", request, context))

    async def UpdateStatus(
        self, request: api_pb2.UpdateStatusRequest, context: grpc.aio.ServicerContext
    ) -> api_pb2.ObjectResponse:
        return cast(api_pb2.ObjectResponse, await self._unary("update_status", request, context))

    async def Patch(self, request: api_pb2.PatchRequest, context: grpc.aio.ServicerContext) -> api_pb2.ObjectResponse:
        return cast(api_pb2.ObjectResponse, await self._unary("patch", request, context))

    async def Delete(self, request: api_pb2.DeleteRequest, context: grpc.aio.ServicerContext) -> api_pb2.ObjectResponse:
        return cast(api_pb2.ObjectResponse, await self._unary("delete", request, context))

    async def DeleteCollection(
        self, request: api_pb2.DeleteCollectionRequest, context: grpc.aio.ServicerContext
    ) -> api_pb2.ListResponse:
        return cast(api_pb2.ListResponse, await self._unary("delete_collection", request, context))

    async def Bind(self, request: api_pb2.BindRequest, context: grpc.aio.ServicerContext) -> api_pb2.ObjectResponse:
        return cast(api_pb2.ObjectResponse, await self._unary("bind", request, context))

    async def Evict(self, request: api_pb2.EvictRequest, context: grpc.aio.ServicerContext) -> api_pb2.ObjectResponse:
        return cast(api_pb2.ObjectResponse, await self._unary("evict", request, context))

    async def Commit(self, request: api_pb2.CommitRequest, context: grpc.aio.ServicerContext) -> api_pb2.CommitResponse:
        return cast(api_pb2.CommitResponse, await self._unary("commit", request, context))

    async def _unary(self, verb: str, request: Message, context: grpc.aio.ServicerContext) -> Any:
        await self._is_open.wait()
        connections.CALLER.set(_caller(context))
        try:
            return await self.answer(verb, request)
        except answers.Refused as refused:
            of_reason = errors.API_ERRORS.get(refused.status.reason, errors.ApiError)
            code = getattr(grpc.StatusCode, of_reason.grpc_code)
            await context.abort(code, refused.status.message)


def _refused(error: errors.ApiError) -> answers.Refused:
    return answers.Refused(meta_v1_pb2.Status.FromString(refusals.encode(error)))


def _caller(context: grpc.aio.ServicerContext) -> str:
    return str(dict(context.invocation_metadata() or ()).get(tokens.CALLER, ""))
