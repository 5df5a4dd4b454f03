"""What each fault does to what is under way, as the table of kinds says it: the same tests for both runtimes.

A kind that Ray cannot do is skipped there with the reason from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pytest

from kemu.lab.scenario.playing import plans
from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.messages.v1 import api_pb2, api_pb2_grpc
from kemu.runtime.env import ActorSpec
from kemu.runtime.faults.kinds import KINDS, PROCESS_FAULTS
from kemu.runtime.runtimes import Runtime
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder
from tests.runtime.world import ECHO, PATIENT, sleeper, talker

S = 1_000_000_000
SERVER, TALKER = "apiserver/0", "talker/0"
SPEED = 5.0
KEEPALIVE_S = 5.0

TESTED: dict[str, None] = {}

T = TypeVar("T")
Test = TypeVar("Test", bound=Callable[..., None])

pytestmark = pytest.mark.slow


def about(what: str) -> Callable[[Test], Test]:
    """The kind that a test is about."""
    TESTED[what] = None

    def mark(test: Test) -> Test:
        return pytest.mark.about(what)(test)  # type: ignore[no-any-return]

    return mark


class World:
    """One run with a server that echoes and, from the start, a talker that says a number each second."""

    def __init__(self, runtime: Runtime, record: Recorder, slack_s: float) -> None:
        self.runtime = runtime
        self.record = record
        self.slack_s = slack_s
        """How much later than in virtual time things may happen."""

    def play(self, main: Callable[[World], Coroutine[Any, Any, None]], count: int = 15) -> None:
        async def drive() -> None:
            await self.runtime.launch([ECHO])
            await self.runtime.launch([talker(TALKER, count=count)])
            await self.runtime.begin()
            await main(self)
            await self.runtime.shutdown()

        self.runtime.run(drive())

    async def until_s(self, seconds: float) -> None:
        await self.runtime.clock.sleep_until_ns(round(seconds * S))

    async def inject(self, what: str, **parameters: Any) -> None:
        given = {"from_": "from"}
        await self.runtime.inject("f", what, {given.get(key, key): value for key, value in parameters.items()})

    async def get(self, name: str = "x") -> str:
        """A unary call of the user's."""
        stub = api_pb2_grpc.ApiStub(self.runtime.env("user").dial(SERVER))
        return (await stub.Get(api_pb2.GetRequest(name=name))).object.decode()

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        return self.record.of(kind)

    def at_s(self, kind: str) -> list[float]:
        return [now_ns / S for now_ns, _, what, _ in self.record.events if what == kind]

    def numbers(self, kind: str) -> list[int]:
        return [number for data in self.of(kind) for number in data["ids"]]

    def is_about(self, seconds: float, expected_s: float) -> bool:
        return expected_s - 0.01 - self.slack_s <= seconds <= expected_s + 0.05 + self.slack_s


@pytest.fixture(params=["sim", pytest.param("ray", marks=pytest.mark.ray)])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    what = request.node.get_closest_marker("about").args[0]
    record = Recorder()
    if request.param == "sim":
        return World(SimRuntime(1, record), record, 0.0)
    if KINDS[what].not_on_ray:
        pytest.skip(f"{what} on Ray: {KINDS[what].not_on_ray}")
    from kemu.runtime.ray.driver.plans import DRIVER_CELL, CellPlan
    from kemu.runtime.ray.driver.runtime import RayRuntime

    request.getfixturevalue("local_ray")
    cells = (
        CellPlan("servers", ("apiserver/*",)),
        CellPlan("talkers", ("talker/*",)),
        CellPlan(DRIVER_CELL, ("*",)),
    )
    runtime = RayRuntime(
        1,
        record,
        directory=tmp_path,
        speed=SPEED,
        cells=cells,
        code=[*(spec.factory for spec in (ECHO, PATIENT, sleeper("s"), talker("t"))), plans.STORE_FACTORY],
    )
    return World(runtime, record, 0.5 * SPEED)


def test_every_kind_that_both_runtimes_can_do_is_tested_here() -> None:
    # What actors carry out is the same code on both, and tested with those actors. Processes are only on Ray.
    done_here = [kind for kind in KINDS.values() if kind.name not in PROCESS_FAULTS]
    both = [kind.name for kind in done_here if not kind.not_on_ray and not kind.carried_out_by]
    assert [name for name in both if name not in TESTED] == []


# Crashes and partitions -----------------------------------------------------------------------------------------------


@about("crash")
def test_a_crash_resets_the_connections_of_the_dead(world: World) -> None:
    async def main(world: World) -> None:
        await world.until_s(2.5)
        await world.runtime.crash(SERVER)
        await world.until_s(4.5)
        await world.runtime.restart(SERVER)
        await world.until_s(10)
        assert await world.get() == "x"

    world.play(main)
    assert [data["code"] for data in world.of("talker.lost")] == ["UNAVAILABLE"]
    assert world.is_about(world.at_s("talker.lost")[0], 2.5)
    assert world.numbers("talker.heard") == [0, 1]
    assert world.of("echo.cancelled") == [], "no code of the dead runs any more"


@about("partition")
def test_a_short_partition_only_delays(world: World) -> None:
    async def main(world: World) -> None:
        await world.until_s(2.5)
        await world.inject("partition", between=[[TALKER], [SERVER]], oneWay=False)
        await world.until_s(5.5)
        await world.runtime.heal("f")
        await world.until_s(20)

    world.play(main)
    assert world.numbers("echo.session") == world.numbers("talker.heard") == list(range(15))
    assert not [second for second in world.at_s("echo.session") if 2.6 + world.slack_s < second < 5.5]


@about("partition")
def test_a_long_partition_breaks_connections_at_both_ends(world: World) -> None:
    async def main(world: World) -> None:
        await world.until_s(2.5)
        await world.inject("partition", between=[[TALKER], [SERVER]], oneWay=False)
        await world.until_s(20)
        await world.runtime.heal("f")

    world.play(main)
    assert world.numbers("talker.heard") == [0, 1]
    assert [data["code"] for data in world.of("talker.lost")] == ["UNAVAILABLE"]
    assert world.is_about(world.at_s("talker.lost")[0], 2.5 + KEEPALIVE_S)
    assert world.is_about(world.at_s("echo.cancelled")[0], 2.5 + KEEPALIVE_S)


# Processes and clocks -------------------------------------------------------------------------------------------------


@about("pause")
def test_a_short_pause_only_delays(world: World) -> None:
    async def main(world: World) -> None:
        await world.until_s(2.5)
        await world.inject("pause", actor=[SERVER])
        await world.until_s(5.5)
        await world.runtime.heal("f")
        await world.until_s(20)

    world.play(main)
    assert world.numbers("echo.session") == world.numbers("talker.heard") == list(range(15))
    assert not [second for second in world.at_s("talker.heard") if 2.6 + world.slack_s < second < 5.5]
    assert world.of("net.connection_lost") == []
    assert {"id": "f", "actor": SERVER} in world.of("chaos.hit")


@about("pause")
def test_a_long_pause_of_a_server_breaks_its_connections(world: World) -> None:
    async def main(world: World) -> None:
        await world.until_s(2.5)
        await world.inject("pause", actor=[SERVER])
        await world.until_s(20)
        assert world.of("echo.cancelled") == [], "it stands still"
        await world.runtime.heal("f")
        await world.until_s(22)
        assert await world.get() == "x"

    world.play(main)
    assert [data["code"] for data in world.of("talker.lost")] == ["UNAVAILABLE"]
    assert world.is_about(world.at_s("talker.lost")[0], 2.5 + KEEPALIVE_S)
    assert world.is_about(world.at_s("echo.cancelled")[0], 20)
    assert world.numbers("talker.heard") == [0, 1]


@about("pause")
def test_a_new_connection_to_who_stands_still_is_used_when_it_goes_on(world: World) -> None:
    async def main(world: World) -> None:
        await world.until_s(2.5)
        await world.inject("pause", actor=[SERVER])
        asked = world.runtime.env("user").spawn(world.get(), "ask")
        await world.until_s(5)
        assert not asked.done()
        await world.runtime.heal("f")
        assert await asked == "x"

    world.play(main)


def play_clock(world: World, what: str, **parameters: Any) -> list[tuple[float, Mapping[str, Any]]]:
    """The clock of an actor is wrong from 15 s to 45 s: when it woke, and what it said then."""

    async def main(world: World) -> None:
        await world.runtime.launch([sleeper("talker/1")])
        await world.until_s(15)
        await world.inject(what, actor=["talker/1"], **parameters)
        await world.until_s(45)
        if KINDS[what].lasts:
            await world.runtime.heal("f")
        await world.until_s(61 + world.slack_s)

    world.play(main)
    assert world.of("chaos.hit") == [{"id": "f", "actor": "talker/1"}]
    return list(zip(world.at_s("sleeper.woke"), world.of("sleeper.woke"), strict=True))


@about("clockJump")
def test_a_jump_changes_timestamps_for_good_and_no_timer(world: World) -> None:
    found = play_clock(world, "clockJump", by=-100.0)
    assert len(found) == 6
    for number, (when, data) in enumerate(found, 1):
        assert world.is_about(when, 10 * number)
        assert world.is_about(data["wall_s"], when - (100 if number > 1 else 0))
        assert world.is_about(data["start"] / S, when - 10)


@about("clockSkew")
def test_a_skew_changes_timestamps_and_a_drift_also_timers(world: World) -> None:
    found = play_clock(world, "clockSkew", by=100.0, drift=1.0)
    assert len(found) == 9
    expected = [10, 17.5, 22.5, 27.5, 32.5, 37.5, 42.5, 50, 60]
    for number, (when, data) in enumerate(found):
        assert world.is_about(when, expected[number])
        assert world.is_about(data["own_s"], 10 * (number + 1)), "the monotonic clock never goes back"
        assert number == 0 or world.is_about(data["start"] / S, expected[number - 1]), "the log has true times"
        if 15 < when < 45:
            assert world.is_about(data["wall_s"], data["own_s"] + 100)
        else:
            assert world.is_about(data["wall_s"], when), "the wall clock is set right at the end"


# Disks: most of their faults are carried out by actors ----------------------------------------------------------------


@about("restore")
def test_a_restored_backup_is_the_past(world: World) -> None:
    async def main(world: World) -> None:
        runtime = world.runtime
        await runtime.launch([ActorSpec("store", plans.STORE_FACTORY, {"fsync": "always"})])
        kv = rpc_pb2_grpc.KVStub(runtime.env("user").dial("store"))
        await kv.Put(rpc_pb2.PutRequest(key=b"before", value=b"v"))
        await world.inject("restore", actor=["store"])
        await kv.Put(rpc_pb2.PutRequest(key=b"after", value=b"v"))
        await runtime.crash("store")
        assert await runtime.heal("f") == 1
        await runtime.restart("store")
        await world.until_s(20)
        kv = rpc_pb2_grpc.KVStub(runtime.env("user").dial("store"))
        found = await kv.Range(rpc_pb2.RangeRequest(key=b"\0", range_end=b"\0"))
        assert [pair.key for pair in found.kvs] == [b"before"]

    world.play(main)
    assert {"id": "f", "actor": "store"} in world.of("chaos.hit")


# Late messages --------------------------------------------------------------------------------------------------------


@about("delay")
def test_a_delay_makes_one_direction_late_and_keeps_its_order(world: World) -> None:
    async def main(world: World) -> None:
        await world.until_s(2.5)
        await world.inject("delay", from_=[TALKER], to=[SERVER], by={"uniform": {"min": 1.0, "max": 3.0}})
        await world.until_s(12.5)
        await world.runtime.heal("f")
        await world.until_s(20)

    world.play(main)
    assert world.numbers("echo.session") == world.numbers("talker.heard") == list(range(15))
    reached, answered = world.at_s("echo.session"), world.at_s("talker.heard")
    late = [second - (number + 1) for number, second in enumerate(reached)][2:11]
    assert all(second > 0.99 for second in late)
    assert all(after - before < 0.1 + world.slack_s for before, after in zip(reached, answered, strict=True))
    assert world.of("net.connection_lost") == []


@about("bandwidth")
def test_a_connection_carries_so_many_bytes_a_second(world: World) -> None:
    seen: list[float] = []

    async def main(world: World) -> None:
        await world.until_s(1)
        await world.inject("bandwidth", from_=["user"], to=[SERVER], bytesPerSecond=10_000.0)
        for _ in range(2):
            assert await world.get("x" * 20_000) == "x" * 20_000
            seen.append(world.runtime.clock.now_ns() / S)

    world.play(main)
    assert world.is_about(seen[0], 3)
    assert world.is_about(seen[1] - seen[0], 2)


@about("drop")
def test_loss_is_a_stall_and_never_a_gap(world: World) -> None:
    async def main(world: World) -> None:
        await world.until_s(0.5)
        await world.inject("drop", from_=[TALKER], to=[SERVER], probability=0.4)
        await world.until_s(12.5)
        await world.runtime.heal("f")
        await world.until_s(30)

    world.play(main)
    numbers = world.numbers("echo.session")
    assert numbers == list(range(len(numbers)))
    late = [second - (number + 1) for number, second in enumerate(world.at_s("echo.session"))]
    assert max(late) > 0.19, "retransmission takes 200 ms at least"
    if not world.of("talker.lost"):
        assert world.numbers("talker.heard") == list(range(15))


@about("drop")
def test_when_nothing_comes_through_the_connection_is_reset(world: World) -> None:
    async def main(world: World) -> None:
        await world.until_s(2.5)
        await world.inject("drop", from_=[TALKER], to=[SERVER], probability=1.0)
        await world.until_s(20)

    world.play(main)
    assert world.numbers("talker.heard") == world.numbers("echo.session") == [0, 1]
    assert [data["code"] for data in world.of("talker.lost")] == ["UNAVAILABLE"]
    assert world.is_about(world.at_s("talker.lost")[0], 3 + KEEPALIVE_S)
    assert world.is_about(world.at_s("echo.cancelled")[0], 3 + KEEPALIVE_S)


# Requests that come twice ---------------------------------------------------------------------------------------------


@about("duplicate")
def test_a_request_comes_twice_and_its_first_answer_counts(world: World) -> None:
    async def main(world: World) -> None:
        await world.until_s(2.5)
        await world.inject("duplicate", from_=["user", TALKER], to=[SERVER], probability=1.0, after=0.0)
        assert await world.get("once") == "once"
        await world.until_s(4.5)
        await world.runtime.heal("f")
        assert await world.get("again") == "again"
        await world.until_s(20)

    world.play(main)
    assert [data["name"] for data in world.of("echo.get")] == ["once", "once", "again"]
    assert world.numbers("echo.session") == [0, 1, 2, 2, 3, 3, *range(4, 15)]


# What actors carry out themselves -------------------------------------------------------------------------------------


CARRIED_OUT = {
    "staleReads": {"apiServer": ["apiserver/1"], "by": 3.0},
    "cutWatches": {"of": ["talker/0"], "compacted": True},
    "slowApi": {"apiServer": ["apiserver/1"], "by": {"exponential": {"mean": 2.0}}},
}
"""What they do is tested with the API server; here, that they reach it and leave it."""


@about("staleReads")
@about("cutWatches")
@about("slowApi")
def test_actors_hear_of_the_faults_that_they_carry_out(world: World) -> None:
    async def main(world: World) -> None:
        await world.runtime.launch([PATIENT])
        for what, parameters in CARRIED_OUT.items():
            await world.runtime.inject(what, what, parameters)
        await world.until_s(4)
        await world.runtime.crash("apiserver/1")
        await world.until_s(6)
        await world.runtime.restart("apiserver/1")
        await world.until_s(20)
        for what in CARRIED_OUT:
            if KINDS[what].lasts:
                await world.runtime.heal(what)
        await world.until_s(24)

    world.play(main)
    begun = world.of("patient.begins")
    assert {data["what"]: data["parameters"] for data in begun} == CARRIED_OUT
    lasting = [what for what in CARRIED_OUT if KINDS[what].lasts]
    assert [data["id"] for data in begun] == [*CARRIED_OUT, *lasting], "the next incarnation hears of what lasts"
    assert sorted(data["id"] for data in world.of("patient.ends")) == sorted(lasting)
    struck = {data["id"]: data["actor"] for data in world.of("chaos.hit")}
    assert struck == dict.fromkeys(CARRIED_OUT, "apiserver/1")


# Connections that break without a crash -------------------------------------------------------------------------------


@about("reset")
def test_a_reset_breaks_connections_and_nothing_else(world: World) -> None:
    async def main(world: World) -> None:
        await world.until_s(2.5)
        await world.inject("reset", between=[[TALKER], [SERVER]])
        await world.until_s(4)
        assert await world.get() == "x"
        with pytest.raises(ValueError, match="in force"):
            await world.runtime.heal("f")

    world.play(main)
    assert [data["code"] for data in world.of("talker.lost")] == ["UNAVAILABLE"]
    assert world.is_about(world.at_s("talker.lost")[0], 2.5)
    assert world.is_about(world.at_s("echo.cancelled")[0], 2.5)
    assert world.of("actor.crashed") == []


@about("halfOpen")
def test_a_half_open_connection_is_found_by_keepalive_alone(world: World) -> None:
    async def main(world: World) -> None:
        await world.get("before")
        await world.until_s(2.5)
        await world.inject("halfOpen", between=[[TALKER, "user"], [SERVER]])
        with pytest.raises(grpc.aio.AioRpcError) as info:
            await world.get("void")
        assert info.value.code() is grpc.StatusCode.UNAVAILABLE
        assert await world.get("after") == "after", "a new connection works"
        await world.until_s(12)

    world.play(main)
    assert [data["name"] for data in world.of("echo.get")] == ["before", "after"]
    assert world.numbers("echo.session") == world.numbers("talker.heard") == [0, 1]
    assert world.is_about(world.at_s("talker.lost")[0], 2.5 + KEEPALIVE_S)
    assert world.is_about(world.at_s("echo.cancelled")[0], 2.5 + KEEPALIVE_S)
