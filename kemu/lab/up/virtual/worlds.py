"""A cluster in virtual time, driven from outside: what is injected between two slices is all that it learns.

Inputs are plain data, so that a run can be repeated from the record of them (:mod:`inputs`). Each stands for one thing
that the outside does: it begins a call, writes to a stream, ends one, strikes with a fault, or ends the run.

Neighbours: :mod:`drivers` lets time pass in a world that has clients, :mod:`replays` in one that is repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import grpc

from kemu.emulated.client import clients, informers
from kemu.lab.scenario.playing import judging, plans, plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.up import bootstrap_objects, clusters
from kemu.lab.up.chaos import annotated_faults, injectors
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime import outside
from kemu.runtime.faults.handlers import Assignment, End
from kemu.runtime.faults.hits import CHAOS
from kemu.runtime.faults.kinds import CLIENT_FAULTS
from kemu.runtime.rpc.clients import Call, StreamStreamCall
from kemu.runtime.runlog.events import FaultEnded, RequestStruck, typed
from kemu.runtime.runtimes import Runtime
from kemu.runtime.sim.simulation import SimRuntime
from kemu.runtime.sim.stepped_loops import SteppedLoop

GATEWAY = "gateway"
"""The gateway, in the run log and to the API servers."""
HOUSEKEEPER = "user/up"
"""Who makes what is in every cluster."""
CARRIERS = "user/chaos"
"""Who looks for faults that objects carry."""
OBSERVER = "user/step"
"""Who looks for what a step waits for."""


class Answer(NamedTuple):
    """How a call ended."""

    code: grpc.StatusCode
    details: str
    trailing: tuple[tuple[str, str | bytes], ...]
    data: bytes | None
    """Data of unary calls that ended well: the response."""


class Hearer(Protocol):
    """The outside end of a call. Its methods are called within a slice, and only take note."""

    def hear(self, data: bytes) -> None:
        """A message of a stream has arrived."""
        ...

    def end(self, answer: Answer) -> None: ...


@runtime_checkable
class Observer(Hearer, Protocol):
    """Observer of some objects, as an informer sees them."""

    def see(self, objects: Mapping[str, Any]) -> None:
        """They have changed; messages by ``namespace/name``. Called within a slice."""
        ...


class ClientFaults(Protocol):
    """Carries out faults that clients outside meet."""

    def begin(self, what: str, fault: Assignment) -> None:
        """Called within a slice, as :meth:`end`."""
        ...

    def end(self, fault: str) -> None: ...


class Deaf:
    """The listener of a world that is repeated: it does nothing."""

    def hear(self, data: bytes) -> None:
        pass

    def end(self, answer: Answer) -> None:
        pass

    def see(self, objects: Mapping[str, apps_v1_pb2.Deployment | core_v1_pb2.Node | core_v1_pb2.Pod]) -> None:
        pass


Input = Sequence[Any]
"""``[what, …]``; see the methods of :class:`World` with a name ``_on_<what>``."""


class ServedAt(NamedTuple):
    """What the objects that every cluster has depend on (:mod:`kemu.lab.up.bootstrap_objects`)."""

    address: str
    port: int
    authority: str


class World:
    """See the module. ``loop`` and ``main`` are for :class:`kemu.lab.scenario.playing.runner.Options`."""

    def __init__(
        self,
        client_faults: ClientFaults | None = None,
        asked: Callable[[int, outside.Question], None] = lambda number, question: None,
    ) -> None:
        """``client_faults``: None where there are no clients. ``asked``: told within a slice what an actor asks a
        process outside, and the number of the input ``answer`` to come."""
        self.loop = SteppedLoop()  # type: ignore[abstract]  # what it refuses is added by name
        self.served_at: ServedAt | None = None
        """To be set before it begins."""
        self.stands = False
        """Set-up is over: from now on time passes only as the driver likes."""
        self.asked = asked
        self._client_faults = client_faults
        self._ending: asyncio.Future[str] = self.loop.create_future()
        self._calls: dict[int, Call] = {}
        """Those that are open, by their numbers."""
        self._questions: dict[int, asyncio.Future[outside.Answer]] = {}
        """Those to processes outside that have no answer yet, by their numbers."""
        self._question = 0
        self._assignments: dict[str, Assignment] = {}
        """Faults of clients that are in force."""
        self._informers: dict[int, informers.Informer[Any]] = {}
        """The informers of observers, by their numbers."""

    async def main(
        self, runtime: Runtime, scenario: Scenario, recorder: plays.Recorder, beats: Heartbeats
    ) -> judging.End:
        """In the place of ``plays.drive``."""
        assert isinstance(runtime, SimRuntime)
        self.runtime, self.scenario = runtime, scenario
        runtime.ask_outside = self._ask
        if self.served_at is None:
            roster = await plays.launch(runtime, scenario, beats, recorder.progress)
        else:
            env, (address, port, authority) = runtime.env(HOUSEKEEPER), self.served_at
            client = clients.Client(env, plans.apiservers_of(scenario, 0))
            more, ranges = clusters.furnishings(scenario), plans.service_ranges_of(scenario)
            processes = scenario.api_servers.services
            bootstrap = bootstrap_objects.Bootstrap(env, client, authority, more, ranges=ranges, processes=processes)
            made_of = clusters.with_accounts(scenario) if authority else scenario
            roster = await plays.launch(runtime, made_of, beats, recorder.progress, bootstrap.furnish)
            await bootstrap.begin(address, port)
        for what in CLIENT_FAULTS:
            runtime.env(GATEWAY).on_fault(what, functools.partial(self._strike_clients, what))
        self._env = runtime.env(GATEWAY)
        self._observing = clients.Client(runtime.env(OBSERVER), plans.apiservers_of(scenario, 0))
        await runtime.begin()
        self._course = plays.Course(runtime, scenario, beats, roster, recorder.triggers, tells_restart=True)
        self.roster = roster
        env = runtime.env(CARRIERS)
        annotated_faults.AnnotatedFaults(
            env, clients.Client(env, plans.apiservers_of(scenario, 0)), self._strike, self._heal
        )
        self.stands = True
        try:
            reason = await self._ending
        finally:
            self._course.cancel()
        return await self._course.end(reason)

    def _strike_clients(self, what: str, fault: Assignment) -> End:
        faults = self._client_faults
        self._assignments[fault.id] = fault

        def end() -> None:
            self._assignments.pop(fault.id, None)
            if faults is not None:
                faults.end(fault.id)

        if faults is not None:
            faults.begin(what, fault)
        return end

    @property
    def now_ns(self) -> int:
        """Virtual time."""
        return self.runtime.master.now_ns() if self.stands else 0

    def loop_ns(self, when_ns: int) -> int:
        """The time of the loop at a virtual time."""
        return when_ns + self.runtime.master.origin_ns

    # Inputs

    def take(self, inputs: Sequence[tuple[Input, Hearer]]) -> None:
        """Between two slices: all of this happens now, in this order."""
        for given, hearer in inputs:
            what = given[0]
            method: Callable[..., None] = getattr(self, f"_on_{what}")
            env = self.runtime.env(OBSERVER if given[0] == "observe" else GATEWAY)
            self.loop.inject(env.context, functools.partial(method, hearer), *given[1:])

    def _on_call(
        self,
        hearer: Hearer,
        number: int,
        target: str,
        method: str,
        metadata: Sequence[Sequence[str | bytes]],
        timeout_s: float | None,
        request: bytes,
    ) -> None:
        """A unary call begins."""
        multi = self._env.dial(target).unary_unary(method)
        call = multi(request, timeout=timeout_s, metadata=[(str(key), value) for key, value in metadata])
        self._opened(number, call, hearer)

    def _on_stream(
        self,
        hearer: Hearer,
        number: int,
        target: str,
        method: str,
        metadata: Sequence[Sequence[str | bytes]],
        timeout_s: float | None,
    ) -> None:
        """A stream of requests and answers begins."""
        multi = self._env.dial(target).stream_stream(method)
        call = multi(None, timeout=timeout_s, metadata=[(str(key), value) for key, value in metadata])
        assert isinstance(call, StreamStreamCall)
        self._opened(number, call, hearer)
        call.listen(bytes, lambda data: hearer.hear(data))

    def _opened(self, number: int, call: Call, hearer: Hearer) -> None:
        self._calls[number] = call
        call.add_done_callback(lambda _: self._over(number, call, hearer))

    def _over(self, number: int, call: Call, hearer: Hearer) -> None:
        self._calls.pop(number, None)
        status = call.status
        assert status is not None
        data = status.message.SerializeToString() if status.message is not None else status.response
        hearer.end(Answer(status.code, status.details, tuple((key, value) for key, value in status.trailing), data))

    def _on_write(self, hearer: Hearer, number: int, data: bytes) -> None:
        """A request is written to a stream."""
        call = self._calls.get(number)
        if isinstance(call, StreamStreamCall) and call.status is None:
            if call.can_post:
                call.post(data)
            else:
                self._env.spawn(_write_when_connected(call, data), f"write to call {number}")

    def _on_close(self, hearer: Hearer, number: int) -> None:
        """No more requests will be written to a stream."""
        call = self._calls.get(number)
        if isinstance(call, StreamStreamCall):
            self._env.spawn(call.done_writing(), f"close of call {number}")

    def _on_cancel(self, hearer: Hearer, number: int) -> None:
        call = self._calls.get(number)
        if call is not None:
            call.cancel()

    async def _ask(self, question: outside.Question) -> outside.Answer:
        self._question += 1
        number = self._question
        answer: asyncio.Future[outside.Answer] = self.loop.create_future()
        self._questions[number] = answer
        self.asked(number, question)
        try:
            return await answer
        finally:
            del self._questions[number]

    def _on_answer(self, hearer: Hearer, number: int, status: int, data: bytes, is_text: bool) -> None:
        """Answer of a process outside to the question of that number, counted from 1; or, with status 0, why there is
        none (-1: because of its authorities)."""
        future = self._questions.get(number)
        if future is None or future.done():
            return  # who asked is gone
        if status > 0:
            future.set_result(outside.Answer(status, data, is_text))
        else:
            found = outside.BadAuthorities if status < 0 else outside.Unanswered
            future.set_exception(found(data.decode()))

    def _on_observe(self, hearer: Hearer, number: int, plural: str, namespace: str, field_selector: str) -> None:
        """Look at some objects, until ``unobserve``."""
        seeing = _Seeing(hearer)
        informer = informers.Informer(
            self._observing, plural, namespace=namespace, field_selector=field_selector, handler=seeing
        )
        seeing.informer = self._informers[number] = informer
        informer.start()

    def _on_unobserve(self, hearer: Hearer, number: int) -> None:
        informer = self._informers.pop(number, None)
        if informer is not None:
            informer.stop()

    def _on_strike(self, hearer: Hearer, fault: Mapping[str, Any], fault_id: str) -> None:
        """A fault, as in a scenario, without ``at``: it begins now."""
        self._strike(fault, fault_id)

    def _on_heal(self, hearer: Hearer, fault_id: str) -> None:
        """A fault ends before its time."""
        self._heal(fault_id)

    def _strike(self, fault: Mapping[str, Any], fault_id: str) -> None:
        self._course.strike(injectors.read_fault(self.scenario, fault, fault_id, self.now_ns))

    def _heal(self, fault_id: str) -> None:
        runtime = self.runtime
        try:
            runtime.faults.end(fault_id)
        except ValueError:
            return  # it has ended meanwhile
        runtime.env(CHAOS).log(FaultEnded(id=fault_id, hits=runtime.hits.of(fault_id)))

    def _on_struck(self, hearer: Hearer, fault_id: str, peer: str, data: Mapping[str, Any]) -> None:
        """A fault has struck a request of a client."""
        fault = self._assignments.get(fault_id)
        if fault is not None:
            fault.hit(peer)
        self._env.log(typed(RequestStruck.KIND, data))

    def _on_end(self, hearer: Hearer, reason: str) -> None:
        """The run is over."""
        if not self._ending.done():
            self._ending.set_result(reason)


class _Seeing:
    """The handler of an informer: passes on what it has, whenever that has changed."""

    informer: informers.Informer[Any]

    def __init__(self, hearer: Hearer) -> None:
        self._see = hearer.see if isinstance(hearer, Observer) else None

    def on_add(self, obj: KubernetesObject) -> None:
        pass

    def on_update(self, old: KubernetesObject, new: KubernetesObject) -> None:
        pass

    def on_delete(self, old: KubernetesObject) -> None:
        pass

    def on_batch_end(self) -> None:
        if self._see is not None:
            self._see(self.informer.store)


async def _write_when_connected(call: StreamStreamCall, data: bytes) -> None:
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # the one that hears of it learns why
        await call.write(data)
