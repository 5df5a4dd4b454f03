"""The client against the real API server and store, with faults, held against the checks that judge every run."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from kemu import errors
from kemu.emulated import variants
from kemu.emulated.client import clients, informers
from kemu.lab.checks.consistency.writes import AcknowledgedWritesSurvive
from kemu.lab.checks.history import History
from kemu.lab.checks.watches.events import WatchEventsAreTrue, WatchHasNoGaps
from kemu.runtime.env import ActorSpec
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder
from tests.client.fake_api import pod


class Cluster:
    """``writer`` makes changes while ``watcher`` looks on, each an actor of its own in the eyes of the network."""

    def __init__(self, seed: int = 1) -> None:
        self.recorder = Recorder()
        self.runtime = SimRuntime(seed, self.recorder, {"watchLatency": {"uniform": {"min": 0.0005, "max": 0.05}}})
        self.clock = self.runtime.clock
        self.writer = clients.Client(self.runtime.env("writer"))
        lists = ("k8s-59848",) if seed % 2 else ()
        self.watcher: clients.Client = variants.choose(clients.Client, lists)(self.runtime.env("watcher"))
        """Its informers list, or begin with a watch."""

    def play(self, main: Callable[[Cluster], Coroutine[Any, Any, Any]], **config: Any) -> Any:
        async def play() -> Any:
            await self.runtime.launch([ActorSpec("store", "kemu.emulated.store.server:Store", {"fsync": "always"})])
            await self.runtime.launch([ActorSpec("apiserver/0", "kemu.emulated.apiserver.server:ApiServer", config)])
            await self.runtime.begin()
            return await main(self)

        outcome = self.runtime.run(play())
        self._check()
        return outcome

    def _check(self) -> None:
        for check in (WatchHasNoGaps(), WatchEventsAreTrue(), AcknowledgedWritesSurvive()):
            history = History()
            for ns, actor, kind, data in self.recorder.events:
                history.feed(ns, actor, kind, data)
                if kind in check.kinds:
                    check.on_event(ns, actor, data)
            result = check.result(history)
            assert result.holds, result

    async def surely(self, request: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Again and again until it is done, whatever happens to the connection."""
        while True:
            try:
                await request()
                return
            except errors.ServiceUnavailable:
                continue
            except (errors.AlreadyExists, errors.NotFound, errors.Conflict):
                return  # it was, the time before


async def _agree(cluster: Cluster, informer: informers.Informer) -> None:
    """After the dust has settled, the informer shows what is there."""
    await cluster.clock.sleep(60)
    listed = await cluster.writer.list("pods", "", informer.label_selector, informer.field_selector)
    there = {f"{one.metadata.namespace}/{one.metadata.name}": one for one in listed.items}
    assert sorted(informer.store) == sorted(there)
    for key, one in there.items():
        assert informer.store[key] == one


def _pod(name: str, **kwargs: Any) -> Any:
    one = pod(name, **kwargs)
    one.metadata.ClearField("uid")
    one.spec.containers.add(name="main", image="app")
    return one


class Mirror:
    """A store that is kept by the handler alone."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}

    def on_add(self, obj: Any) -> None:
        assert obj.metadata.name not in self.objects
        self.objects[obj.metadata.name] = obj

    def on_update(self, old: Any, new: Any) -> None:
        assert self.objects[old.metadata.name] == old
        assert int(new.metadata.resourceVersion) > int(old.metadata.resourceVersion)
        self.objects[new.metadata.name] = new

    def on_delete(self, old: Any) -> None:
        del self.objects[old.metadata.name]


def test_two_informers_with_selectors() -> None:
    async def main(cluster: Cluster) -> None:
        red = informers.Informer(cluster.watcher, "pods", label_selector="color=red", handler=Mirror())
        here = informers.Informer(cluster.watcher, "pods", field_selector="spec.nodeName=n1", handler=Mirror())
        await red.synced()
        await here.synced()
        await cluster.writer.create(_pod("a", labels={"color": "red"}))
        await cluster.writer.create(_pod("b", labels={"color": "blue"}, node="n1"))
        created = await cluster.writer.create(_pod("c", labels={"color": "red"}, node="n1"))
        await cluster.clock.sleep(1)
        assert sorted(red.store) == ["default/a", "default/c"]
        assert sorted(here.store) == ["default/b", "default/c"]
        # It leaves one selection by an update, and enters the other.
        created.metadata.labels["color"] = "blue"
        await cluster.writer.update(created)
        await cluster.writer.bind("default", "a", "", "n1")
        await _agree(cluster, red)
        await _agree(cluster, here)
        assert sorted(red.store) == ["default/a"]
        assert sorted(here.store) == ["default/a", "default/b", "default/c"]

    Cluster().play(main)


def test_a_server_that_crashes_and_comes_back() -> None:
    async def main(cluster: Cluster) -> None:
        informer = informers.Informer(cluster.watcher, "pods", handler=Mirror())
        await informer.synced()
        for n in range(30):
            await cluster.surely(lambda n=n: cluster.writer.create(_pod(f"p{n}")))
            if n % 10 == 5:
                await cluster.runtime.crash("apiserver/0")
                await cluster.runtime.restart("apiserver/0")
            if n % 4 == 3:
                await cluster.surely(lambda n=n: cluster.writer.delete("pods", f"p{n - 1}", "default"))
        await _agree(cluster, informer)
        assert len(informer.store) == 23

    Cluster().play(main)


def test_a_revision_that_the_server_has_forgotten() -> None:
    cluster = Cluster()

    async def main(cluster: Cluster) -> None:
        informer = informers.Informer(cluster.watcher, "pods", handler=Mirror())
        await informer.synced()
        for n in range(10):
            await cluster.writer.create(_pod(f"p{n}"))
        await cluster.clock.sleep(1)
        await cluster.runtime.partition("cut", ["watcher"], ["apiserver/0"])
        for n in range(10, 40):
            await cluster.writer.create(_pod(f"p{n}"))
            await cluster.writer.delete("pods", f"p{n - 10}", "default")
        await cluster.clock.sleep(10)
        await cluster.runtime.heal("cut")
        await _agree(cluster, informer)
        assert len(informer.store) == 10

    cluster.play(main, window_events=8)
    assert [data["reason"] for data in cluster.recorder.of("watch.closed", "watcher")] == ["Expired"]
    assert len(cluster.recorder.of("watch.listed", "watcher")) == 2


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_the_view_agrees_in_the_end(seed: int) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.clock.sleep(0.01)  # the informer begins late
        random = cluster.runtime.env("writer").random
        mirror = Mirror()
        informer = informers.Informer(cluster.watcher, "pods", label_selector="color in (red,green)", handler=mirror)
        await informer.synced()
        cuts = 0
        for _ in range(60):
            await cluster.surely(lambda: _change(cluster, random))
            match random.randrange(12):
                case 0:
                    actor = random.choice(["apiserver/0", "store"])
                    await cluster.runtime.crash(actor)
                    await cluster.clock.sleep(random.random() * 3)
                    await cluster.runtime.restart(actor)
                case 1:
                    cuts += 1
                    sides: list[list[str]] = [["watcher"], ["apiserver/0"]]
                    random.shuffle(sides)
                    await cluster.runtime.partition(f"cut-{cuts}", *sides, one_way=random.random() < 0.5)
                    await cluster.clock.sleep(random.random() * 12)
                    await cluster.runtime.heal(f"cut-{cuts}")
                case _:
                    await cluster.clock.sleep(random.random())
        await _agree(cluster, informer)
        assert mirror.objects == {key.partition("/")[2]: one for key, one in informer.store.items()}

    Cluster(seed).play(main, window_events=15)


async def _change(cluster: Cluster, random: Any) -> None:
    writer, name = cluster.writer, f"p{random.randrange(8)}"
    color: Mapping[str, str] = {"color": random.choice(["red", "green", "blue"])}
    match random.randrange(3):
        case 0:
            await writer.create(_pod(name, labels=color))
        case 1:
            await writer.patch("pods", name, "default", {"metadata": {"labels": dict(color)}})
        case _:
            await writer.delete("pods", name, "default")


def test_an_informer_that_begins_late_sees_no_part_of_the_state() -> None:
    """``watchList`` of client-go's reflector: the store is empty, then whole, and nothing is listed."""

    async def main(cluster: Cluster) -> None:
        for n in range(20):
            await cluster.writer.create(_pod(f"p{n}"))
        seen: list[int] = []
        handler: informers.Callbacks[Any] = informers.Callbacks(lambda pod: seen.append(len(informer.store)))
        informer: informers.Informer[Any] = informers.Informer(cluster.watcher, "pods", handler=handler)
        await informer.synced()
        assert seen == list(range(1, 21))
        await cluster.writer.delete("pods", "p3", "default")
        await _agree(cluster, informer)

    cluster = Cluster(2)
    cluster.play(main)
    assert [data["objects"] for data in cluster.recorder.of("watch.listed", "watcher")] == [20]
    assert not cluster.recorder.of("client.listed", "watcher")


def test_a_state_that_is_cut_off_comes_again() -> None:
    async def main(cluster: Cluster) -> None:
        for n in range(5):
            await cluster.writer.create(_pod(f"p{n}"))
        informer: informers.Informer[Any] = informers.Informer(cluster.watcher, "pods")
        informer.start()
        await cluster.runtime.partition("cut", ["watcher"], ["apiserver/0"])
        await cluster.clock.sleep(5)
        await cluster.writer.delete("pods", "p3", "default")
        assert not informer.store
        await cluster.runtime.heal("cut")
        await informer.synced()
        assert len(informer.store) == 4

    Cluster(2).play(main)
