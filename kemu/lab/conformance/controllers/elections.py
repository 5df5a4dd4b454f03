"""Recorded leader elections, repeated by the candidates of :mod:`kemu.emulated.client.elections`.

The Lease is in a world of the case, in which requests take as long, fail or hang as the case says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

from kemu import errors
from kemu.emulated.client import elections
from kemu.emulated.objects import meta
from kemu.messages.k8s import coordination_v1_pb2
from kemu.runtime.env import EPOCH_UNIX_S, MILLISECOND_NS, SECOND_NS, Env
from kemu.runtime.runlog.events import Event, LeaseObserved
from kemu.runtime.sim.simulation import SimRuntime

Json = dict[str, Any]

START_UNIX_NS = EPOCH_UNIX_S * SECOND_NS


def answer(case: Json) -> Json:
    world = _World(case)
    return world.runtime.run(world.play())


def agrees(expect: Json, found: Json) -> list[str]:
    """What differs, one line for each."""
    differences = []
    for name in ("events", "calls"):
        wanted, got = expect[name], found[name]
        if len(wanted) != len(got):
            differences.append(f"{name}: {len(wanted)} recorded, {len(got)} by kemu")
        for one, other in zip(wanted, got, strict=False):
            if one != other:
                differences.append(f"{name}: {one} recorded, {other} by kemu")
                break
    if expect["lease"] != found["lease"]:
        differences.append(f"lease: {expect['lease']} recorded, {found['lease']} by kemu")
    return differences


def _milliseconds(time_ns: int) -> int:
    """Rounded: Go and Python differ by what floats of jitter leave of a nanosecond."""
    return (time_ns + MILLISECOND_NS // 2) // MILLISECOND_NS


class _World:
    def __init__(self, case: Json) -> None:
        self.case = case
        self.runtime = SimRuntime(0, lambda now_ns, actor, kind, data: None)
        self.clock = self.runtime.clock
        self.lease: coordination_v1_pb2.Lease | None = None
        self.events: list[Json] = []
        self.calls: list[Json] = []
        self._version = 0
        self.env = self.runtime.env("world")

    def now_ms(self) -> int:
        return _milliseconds(self.clock.now_ns())

    async def play(self) -> Json:
        case = self.case
        await self.runtime.begin()
        for edit in case.get("edits") or ():
            self.clock.call_at_ns(edit["atMs"] * MILLISECOND_NS, self._edit, edit)
        for one in case["candidates"]:
            _Candidate(self, one)
        await self.clock.sleep_until_ns(case["horizonMs"] * MILLISECOND_NS)
        lease = None
        if self.lease is not None:
            spec = self.lease.spec
            lease = {
                "holder": spec.holderIdentity,
                "durationSeconds": spec.leaseDurationSeconds,
                "transitions": spec.leaseTransitions,
                "acquiredMs": _milliseconds(meta.unix_ns(spec.acquireTime) - START_UNIX_NS),
                "renewedMs": _milliseconds(meta.unix_ns(spec.renewTime) - START_UNIX_NS),
            }
        events = sorted(self.events, key=lambda one: (one["atMs"], one["who"], one["what"]))
        return {
            "events": events,
            "calls": sorted(self.calls, key=lambda one: (one["atMs"], one["who"])),
            "lease": lease,
        }

    def put(self, lease: coordination_v1_pb2.Lease) -> None:
        self._version += 1
        lease.metadata.resourceVersion = str(self._version)
        self.lease = lease

    def _edit(self, edit: Json) -> None:
        before, self.lease = self.lease, None
        if edit["do"] == "delete":
            return
        lease = coordination_v1_pb2.Lease()
        spec = lease.spec
        spec.holderIdentity, spec.leaseDurationSeconds = edit["holder"], edit["durationSeconds"]
        spec.leaseTransitions = 0 if before is None else before.spec.leaseTransitions + 1
        meta.set_time(spec.acquireTime, self.clock.unix_ns())
        meta.set_time(spec.renewTime, self.clock.unix_ns())
        self.put(lease)


class _Candidate:
    """A process with the world's clock, and jitter that only the time decides."""

    def __init__(self, world: _World, asked: Json) -> None:
        self._world = world
        self.name: str = asked["name"]
        case = world.case
        settings = elections.Settings(
            "lease",
            lease_duration_s=case["leaseMs"] / 1000,
            renew_deadline_s=case["renewMs"] / 1000,
            retry_period_s=case["retryMs"] / 1000,
            release_on_cancel=case["release"],
        )
        self._handlers: dict[str, Callable[[Any], object]] = {}
        env: Env = SimpleNamespace(  # type: ignore[assignment]  # as much of an Env as candidates need
            name=self.name,
            clock=world.clock,
            random=SimpleNamespace(random=lambda: world.now_ms() * 7919 % 25 / 24),
            spawn=world.env.spawn,
            log=self._log,
            exit=self._exit,
            on_fault=self._handlers.__setitem__,
        )
        self._has_ended = False
        elector = elections.Elector(env, _Leases(world, self.name), settings, self.name)
        self._candidate = elections.Candidate(env, elector)
        world.clock.call_at_ns(asked["startMs"] * MILLISECOND_NS, self._begin)
        if "stopMs" in asked:
            world.clock.call_at_ns(asked["stopMs"] * MILLISECOND_NS, self._stop)

    def _begin(self) -> None:
        self._world.env.spawn(self._run(), self.name)

    async def _run(self) -> None:
        await self._candidate.win()
        self._happened("leading")

    def _stop(self) -> None:
        if not self._has_ended:
            self._handlers["terminate"](SimpleNamespace(hit=lambda peer: None))

    def _exit(self, why: str) -> NoReturn:
        self._has_ended = True
        self._happened("stopped")
        raise asyncio.CancelledError(why)

    def _log(self, event: Event) -> None:
        if isinstance(event, LeaseObserved):
            self._happened(f"sees {event.holder}")

    def _happened(self, what: str) -> None:
        self._world.events.append({"atMs": self._world.now_ms(), "who": self.name, "what": what})


class _Leases:
    """One candidate's way to the API server, with what goes wrong on it."""

    def __init__(self, world: _World, name: str) -> None:
        self._world = world
        self._name = name

    async def get(self, resource: str, name: str, namespace: str) -> coordination_v1_pb2.Lease:
        def read() -> None:
            if self._world.lease is None:
                raise errors.NotFound("not found")

        return await self._ask("get", read)

    async def create(self, obj: coordination_v1_pb2.Lease) -> coordination_v1_pb2.Lease:
        def write() -> None:
            if self._world.lease is not None:
                raise errors.AlreadyExists("exists")
            self._world.put(obj)

        return await self._ask("create", write)

    async def update(self, obj: coordination_v1_pb2.Lease) -> coordination_v1_pb2.Lease:
        def write() -> None:
            lease = self._world.lease
            if lease is None:
                raise errors.NotFound("not found")
            if lease.metadata.resourceVersion != obj.metadata.resourceVersion:
                raise errors.Conflict("conflict")
            self._world.put(obj)

        return await self._ask("update", write)

    async def _ask(self, verb: str, carry_out: Callable[[], None]) -> coordination_v1_pb2.Lease:
        world, began_ms = self._world, self._world.now_ms()
        fault = self._fault(verb, began_ms)
        what = fault.get("do", "")
        reply: asyncio.Future[coordination_v1_pb2.Lease] = asyncio.get_running_loop().create_future()

        def arrive() -> None:
            try:
                if what == "error":
                    raise errors.InternalError("planned")
                carry_out()
                assert world.lease is not None
                found = coordination_v1_pb2.Lease.FromString(world.lease.SerializeToString())
            except errors.ApiError as error:
                if what != "lost" and not reply.done():
                    reply.set_exception(error)
            else:
                if what != "lost" and not reply.done():
                    reply.set_result(found)

        after_ms = fault["byMs"] if what == "slow" else world.case["latencyMs"]
        if what != "hang":
            world.clock.call_at_ns(world.clock.now_ns() + after_ms * MILLISECOND_NS, arrive)
        result = "no answer"
        try:
            lease = await reply
            result = "ok"
            return lease
        except errors.ApiError as error:
            result = _RESULTS.get(type(error), "error")
            raise
        finally:
            world.calls.append({"atMs": began_ms, "who": self._name, "verb": verb, "result": result})

    def _fault(self, verb: str, at_ms: int) -> Json:
        for one in self._world.case.get("faults") or ():
            concerned = one["who"] == self._name and one.get("verb", verb) == verb
            if concerned and one["fromMs"] <= at_ms < one["toMs"]:
                return dict(one)
        return {}


_RESULTS = {errors.NotFound: "not found", errors.AlreadyExists: "exists", errors.Conflict: "conflict"}
