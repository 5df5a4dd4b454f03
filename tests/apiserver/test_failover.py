"""Clients go to another API server when theirs is gone or out of reach, and resume their watches there."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.client import retries
from kemu.emulated.client.clients import Client
from kemu.emulated.client.informers import Callbacks, Informer
from kemu.lab.checks import registry
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder, sim
from tests.apiserver.apiserver_cluster import node, pod
from tests.apiserver.test_with_store import STORE, TIMING, Traffic, server

BOTH = ("apiserver/0", "apiserver/1")


class World:
    """One client of two API servers, which watches pods; another one, of the second server alone, writes."""

    def __init__(self, runtime: SimRuntime) -> None:
        self.runtime = runtime
        self.clock = runtime.clock
        self.client = Client(runtime.env("mover"), BOTH)
        self.writer = Client(runtime.env("writer"), "apiserver/1")
        self.seen: list[tuple[str, str]] = []
        self.revisions: list[int] = []
        handler = Callbacks(lambda obj: self._see("add", obj), lambda _, obj: self._see("update", obj))
        self.pods = Informer(self.client, "pods", handler=handler)

    def _see(self, what: str, obj: Any) -> None:
        self.seen.append((what, obj.metadata.name))
        self.revisions.append(int(obj.metadata.resourceVersion))


def play(
    main: Callable[[World], Coroutine[Any, Any, None]], lag_s: float = 0.0, servers: int = 2, **config: Any
) -> Recorder:
    recorder = Recorder()
    specs = [server(0, **config), server(1, cache_lag_s=lag_s, **config)][:servers]

    async def drive(runtime: SimRuntime) -> None:
        async with asyncio.timeout(3600):
            await main(World(runtime))

    sim(drive, 1, [STORE, *specs], sink=recorder)
    return recorder


def test_watches_resume_at_the_other_server_where_they_stood() -> None:
    async def main(world: World) -> None:
        await world.pods.synced()
        await world.writer.create(pod("a"))
        await world.clock.sleep(1)
        await world.runtime.crash("apiserver/0")
        await world.writer.create(pod("b"))
        crashed_ns = world.clock.now_ns()
        while len(world.seen) < 2:
            await world.clock.sleep(0.001)
        assert world.clock.now_ns() - crashed_ns < SECOND_NS / 10, "nobody waits while there is another server to try"
        await world.client.create(pod("c"))
        await world.clock.sleep(1)
        assert world.seen == [("add", "a"), ("add", "b"), ("add", "c")]

    recorder = play(main)
    assert recorder.of("client.moved", "mover") == [{"from": "apiserver/0", "to": "apiserver/1"}], (
        "both streams at once"
    )
    assert len(recorder.of("watch.listed", "mover")) == 1, "it need not list again"


def test_a_server_that_is_behind_keeps_a_watch_waiting_and_never_shows_it_the_past() -> None:
    async def main(world: World) -> None:
        await world.pods.synced()
        await world.client.create(pod("a"))
        await world.client.create(pod("b"))
        await world.clock.sleep(1)
        await world.runtime.crash("apiserver/0")
        begin_ns = world.clock.now_ns()
        await world.writer.create(pod("c"))
        while len(world.seen) < 3:
            await world.clock.sleep(0.01)
        assert world.clock.now_ns() - begin_ns >= 10 * SECOND_NS, "the second server learns of it that late"
        assert world.seen == [("add", "a"), ("add", "b"), ("add", "c")]
        assert world.revisions == sorted(world.revisions)

    recorder = play(main, lag_s=10.0)
    assert len(recorder.of("watch.listed", "mover")) == 1


def test_a_read_at_a_revision_that_the_server_has_not_reached_is_refused_in_words_of_its_own() -> None:
    async def main(world: World) -> None:
        created = await world.client.create(pod("a"))
        await world.runtime.crash("apiserver/0")
        with pytest.raises(errors.ServiceUnavailable):  # the connection broke under it
            await asyncio.gather(*(world.client.get("pods", "a", "default") for _ in range(2)))
        with pytest.raises(errors.ServerTimeout, match="Too large resource version"):
            await world.client.list("pods", resource_version=created.metadata.resourceVersion)
        assert (await world.client.list("pods")).items, "a consistent read goes to the store"

    play(main, lag_s=30.0)


def test_it_lists_again_only_when_the_other_server_no_longer_knows_its_revision() -> None:
    async def main(world: World) -> None:
        await world.pods.synced()
        await world.runtime.partition("f", ["mover"], ["apiserver/0", "apiserver/1"])
        for number in range(30):
            await world.writer.create(pod(f"p{number}"))
        await world.clock.sleep(6)
        await world.runtime.heal("f")
        await world.clock.sleep(30)
        assert sorted(name for _, name in world.seen) == sorted(f"p{number}" for number in range(30))

    recorder = play(main, window_events=5)
    assert [data["reason"] for data in recorder.of("watch.closed", "mover")] == ["Expired"]


def test_a_server_that_is_out_of_reach_is_left_when_keepalive_tells() -> None:
    async def main(world: World) -> None:
        await world.pods.synced()
        await world.runtime.partition("f", ["mover"], ["apiserver/0"])
        begin_ns = world.clock.now_ns()
        await retries.patiently(world.client.env, lambda: world.client.create(pod("a")))
        assert 5 * SECOND_NS <= world.clock.now_ns() - begin_ns < 6 * SECOND_NS
        await world.runtime.heal("f")
        await world.clock.sleep(60)
        assert world.client.servers.current == "apiserver/1", "nobody goes back as long as the connection holds"
        assert [name for _, name in world.seen] == ["a"]

    play(main)


def test_without_any_server_it_backs_off() -> None:
    async def main(world: World) -> None:
        await world.pods.synced()
        for name in BOTH:
            await world.runtime.crash(name)
        await world.clock.sleep(20)
        await world.runtime.restart("apiserver/1")
        await retries.patiently(world.client.env, lambda: world.client.create(pod("a")))
        await world.clock.sleep(40)
        assert [name for _, name in world.seen] == ["a"]
        assert world.client.servers.current == "apiserver/1"

    recorder = play(main)
    assert 2 <= len(recorder.of("client.moved", "mover")) <= 20


def test_a_client_of_one_server_stays_with_it() -> None:
    async def main(world: World) -> None:
        client = Client(world.runtime.env("settled"), "apiserver/0")
        await world.runtime.crash("apiserver/0")
        with pytest.raises(errors.ServiceUnavailable, match="the connection to apiserver/0 was lost"):
            await client.create(pod("a"))

    assert play(main).of("client.moved") == []


def assert_newer(old: Any, new: Any) -> None:
    assert int(old.metadata.resourceVersion) < int(new.metadata.resourceVersion), "the informer went back in time"


async def each_server_in_turn(runtime: SimRuntime, seed: int, until_ns: int) -> None:
    """Crashes or is cut off from everybody, so that clients move all the time."""
    choose = random.Random(f"turns/{seed}")
    for number in range(100):
        await runtime.clock.sleep(choose.uniform(0.5, 3))
        if runtime.clock.now_ns() > until_ns:
            return
        victim = BOTH[number % 2]
        if choose.random() < 0.3:
            others = [f"{kind}{n}" for kind in ("informed", "everywhere") for n in range(6)]
            await runtime.partition(f"f{number}", [victim], others)
            await runtime.clock.sleep(choose.choice([0.5, 8]))
            await runtime.heal(f"f{number}")
        else:
            await runtime.crash(victim)
            await runtime.clock.sleep(choose.choice([0.01, 3]))
            await runtime.restart(victim)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_while_everybody_moves_to_and_fro(seed: int) -> None:
    recorder = Recorder()

    async def main(runtime: SimRuntime) -> None:
        until_ns = runtime.clock.now_ns() + 40 * SECOND_NS
        setup = Client(runtime.env("setup"), BOTH)
        await setup.create(node("n1"))
        informers = []
        for n in range(6):
            handler = Callbacks(on_update=assert_newer)
            client = Client(runtime.env(f"informed{n}"), BOTH[::-1] if n % 2 else BOTH)
            informers.append(Informer(client, "pods", handler=handler))
            informers[-1].start()
        traffic = [Traffic(runtime, number, seed, 2) for number in range(6)]
        for number, one in enumerate(traffic):
            one.client = Client(runtime.env(f"everywhere{number}"), BOTH)
        await asyncio.gather(*(one.run(until_ns) for one in traffic), each_server_in_turn(runtime, seed, until_ns))
        await runtime.clock.sleep(90)
        truth = {f"{one.metadata.namespace}/{one.metadata.name}": one for one in (await setup.list("pods")).items}
        assert all(informer.store == truth for informer in informers)

    servers: list[ActorSpec] = [server(0, window_events=300), server(1, window_events=300, cache_lag_s=0.3)]
    sim(main, seed, [STORE, *servers], timing=TIMING, sink=recorder)
    assert len(recorder.of("client.moved")) > 50
    _, results = registry.judge(Entry(*event) for event in recorder.events)
    verdicts = {result.id: (result.holds, result.detail) for result in results}
    for check in ("watch-has-no-gaps", "acknowledged-writes-survive", "pod-bound-at-most-once"):
        assert verdicts[check][0], verdicts[check]
