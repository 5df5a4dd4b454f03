"""Informers: a live view that survives lost connections, forgotten revisions and restarted servers."""

from __future__ import annotations

from typing import Any

import pytest

from kemu import errors
from kemu.emulated.client import clients, informers
from kemu.messages.k8s import core_v1_pb2
from tests.client.fake_api import ADDED, pod
from tests.client.world import World


class Recorder:
    """What the handler was told, as text."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_add(self, obj: Any) -> None:
        self.told.append(f"+{obj.metadata.name}")

    def on_update(self, old: Any, new: Any) -> None:
        assert int(old.metadata.resourceVersion) < int(new.metadata.resourceVersion)
        self.told.append(f"~{new.metadata.name}")

    def on_delete(self, old: Any) -> None:
        self.told.append(f"-{old.metadata.name}")

    def on_batch_end(self) -> None:
        self.told.append(".")

    def take(self) -> str:
        told, self.told = " ".join(self.told), []
        return told


def _informer(world: World, **kwargs: Any) -> tuple[informers.Informer, Recorder]:
    recorder = Recorder()
    return informers.Informer(world.client, "pods", handler=recorder, **kwargs), recorder


def test_lists_then_hears_every_change_in_order(world: World) -> None:
    async def main(world: World) -> None:
        world.state.put(pod("a"), ADDED)
        informer, recorder = _informer(world)
        await informer.synced()
        assert recorder.take() == "+a ."
        assert list(informer.store) == ["default/a"]
        world.state.put(pod("b"), ADDED)
        world.state.put(pod("a"))
        await world.clock.sleep(0.1)
        world.state.remove("pods", "b", "default")
        await world.clock.sleep(0.1)
        assert recorder.take() == "+b ~a . -b ."
        assert list(informer.store) == ["default/a"]
        assert informer.revision == world.state.revision

    world.play(main)
    (listed,) = world.logged("watch.listed")
    assert {key: value for key, value in listed.items() if key != "digest"} == {
        "watch": "pods#1", "resource": "pods", "namespace": "", "label_selector": "", "field_selector": "", "rev": 2,
        "objects": 1,
    }  # fmt: skip
    first, second = world.logged("watch.events")
    assert (first["watch"], first["revs"], first["types"]) == ("pods#1", [3, 4], "AM")
    assert (second["watch"], second["revs"], second["types"]) == ("pods#1", [5], "D")
    assert [len(data["digests"]) for data in (first, second)] == [2, 1]


def test_several_informers_share_one_stream(world: World) -> None:
    async def main(world: World) -> None:
        red, heard_red = _informer(world, label_selector="color=red")
        here, heard_here = _informer(world, field_selector="spec.nodeName=n1", namespace="default")
        nodes = informers.Informer(world.client, "nodes")
        for informer in (red, here, nodes):
            await informer.synced()
        world.state.put(pod("a", labels={"color": "red"}), ADDED)
        world.state.put(pod("b", labels={"color": "blue"}, node="n1"), ADDED)
        world.state.put(pod("c", labels={"color": "red"}, node="n1"), ADDED)
        await world.clock.sleep(0.1)
        assert heard_red.take() == ". +a +c ."
        assert heard_here.take() == ". +b +c ."
        assert not nodes.store

    world.play(main)
    assert world.state.watch_streams == 1
    assert world.state.sessions == 1


@pytest.mark.parametrize("apart", [False, True])
def test_kinds_overtake_one_another_where_they_have_streams_of_their_own(apart: bool) -> None:
    world, count = World(timing={"watchLatency": {"uniform": {"min": 0.001, "max": 0.1}}}, apart=apart), 40
    came: list[str] = []

    async def main(world: World) -> None:
        note = informers.Callbacks(on_add=lambda obj: came.append(obj.metadata.name))
        for kind in ("pods", "nodes"):
            await informers.Informer(world.client, kind, handler=note).synced()
        for number in range(count):
            for obj in (core_v1_pb2.Node(metadata={"name": f"n{number}"}), pod(f"p{number}")):
                world.state.put(obj, ADDED)
                await world.clock.sleep(0.02)
        await world.clock.sleep(1)

    world.play(main)
    assert world.state.watch_streams == (2 if apart else 1)
    for letter in "np":
        assert [name for name in came if name[0] == letter] == [f"{letter}{number}" for number in range(count)]
    overtaken = sum(came.index(f"p{number}") < came.index(f"n{number}") for number in range(count))
    assert overtaken == 0 if not apart else 5 < overtaken < count / 2


@pytest.mark.parametrize("compacted", [False, True])
def test_each_stream_is_resumed_by_itself(compacted: bool) -> None:
    world = World(apart=True)

    async def main(world: World) -> None:
        found = {kind: informers.Informer(world.client, kind) for kind in ("pods", "nodes")}
        for informer in found.values():
            await informer.synced()
        world.state.put(pod("a"), ADDED)
        await world.clock.sleep(0.1)
        await world.runtime.crash("apiserver/0")
        world.state.put(pod("b"), ADDED)
        world.state.put(core_v1_pb2.Node(metadata={"name": "n1"}), ADDED)
        if compacted:
            world.state.compacted = world.state.revision
        await world.runtime.restart("apiserver/0")
        await world.clock.sleep(5)
        assert [sorted(one.store) for one in found.values()] == [["default/a", "default/b"], ["n1"]]

    world.play(main)
    assert world.state.watch_streams == 4
    again = sorted(one["resource"] for one in world.logged("watch.listed")[2:])
    assert again == (["nodes", "pods"] if compacted else [])
    ids = [one["watch"] for one in world.logged("watch.listed")]
    assert len({*ids}) == len(ids)


def test_resumes_where_it_stood_when_the_connection_was_lost(world: World) -> None:
    async def main(world: World) -> None:
        informer, recorder = _informer(world)
        await informer.synced()
        world.state.put(pod("a"), ADDED)
        await world.clock.sleep(0.1)
        await world.runtime.crash("apiserver/0")
        world.state.put(pod("b"), ADDED)
        world.state.remove("pods", "a", "default")
        await world.clock.sleep(0.1)
        await world.runtime.restart("apiserver/0")
        await world.clock.sleep(5)
        assert recorder.take() == ". +a . +b -a ."

    world.play(main)
    assert [create.resource_version for create in world.state.creates] == ["1", "2"]
    assert len(world.logged("watch.listed")) == 1
    assert world.logged("watch.closed") == []


def test_lists_anew_when_its_revision_is_forgotten(world: World) -> None:
    async def main(world: World) -> None:
        for name in ("kept", "changed", "gone", "replaced"):
            world.state.put(pod(name), ADDED)
        informer, recorder = _informer(world)
        await informer.synced()
        recorder.take()
        await world.runtime.crash("apiserver/0")
        world.state.put(pod("changed"))
        world.state.remove("pods", "gone", "default")
        world.state.remove("pods", "replaced", "default")
        world.state.put(pod("replaced", uid="another"), ADDED)
        world.state.put(pod("new"), ADDED)
        world.state.compacted = world.state.revision
        await world.runtime.restart("apiserver/0")
        await world.clock.sleep(5)
        # What is gone comes first, then the list in its order; a name with a new UID is another object.
        assert recorder.take() == "-gone ~changed -replaced +replaced +new ."
        world.state.put(pod("kept"))
        await world.clock.sleep(0.1)
        assert recorder.take() == "~kept ."

    world.play(main)
    assert [one.resource_version for one in world.state.lists] == ["0", ""]
    assert world.logged("watch.closed") == [{"watch": "pods#1", "reason": "Expired"}]
    assert [data["watch"] for data in world.logged("watch.listed")] == ["pods#1", "pods#2"]
    assert [data["watch"] for data in world.logged("watch.events")] == ["pods#2"]


def test_events_before_the_expiry_count_to_the_old_watch(world: World) -> None:
    from kemu.messages.v1 import api_pb2

    async def main(world: World) -> None:
        from tests.client.fake_api import status

        informer, recorder = _informer(world)
        await informer.synced()
        new = world.state.put(pod("a"), ADDED)
        response = api_pb2.WatchResponse()
        response.events.add(watch_id=1, type=0, resource_version=2, object=new.SerializeToString(deterministic=True))
        response.events.add(watch_id=1, type=4, error=status("Expired"))
        world.client.watches.on_message(response)
        await world.clock.sleep(1)
        assert recorder.take() == ". +a . ."

    world.play(main)
    kinds = [(kind, data["watch"]) for _, _, kind, data in world.log if kind.startswith("watch.")]
    assert kinds == [
        ("watch.listed", "pods#1"),
        ("watch.events", "pods#1"),
        ("watch.closed", "pods#1"),
        ("watch.listed", "pods#2"),
    ]


def test_a_list_after_lost_history_comes_in_pages(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informers, "PAGE", 3)

    async def main(world: World) -> None:
        for n in range(7):
            world.state.put(pod(f"p{n}"), ADDED)
        informer, _ = _informer(world)
        informer._version = ""
        await informer.synced()
        assert len(informer.store) == 7

    world.play(main)
    assert [(one.resource_version, one.limit) for one in world.state.lists] == [("", 3)] * 3


def test_a_watch_that_the_server_cannot_serve_now_is_asked_for_again(world: World) -> None:
    async def main(world: World) -> None:
        world.state.watch_errors = ["Timeout", "InternalError"]
        informer, recorder = _informer(world)
        await informer.synced()
        await world.clock.sleep(10)
        world.state.put(pod("a"), ADDED)
        await world.clock.sleep(0.1)
        assert recorder.take() == ". +a ."

    world.play(main)
    assert len(world.state.creates) == 3
    assert world.logged("watch.closed") == []


def test_a_watch_that_can_never_be_served_is_an_error(world: World) -> None:
    async def main(world: World) -> None:
        world.state.watch_errors = ["BadRequest"]
        informer, _ = _informer(world)
        await informer.synced()
        await world.clock.sleep(1)

    with pytest.raises(errors.KemuError):
        world.play(main)


def test_starts_from_what_is_known(world: World) -> None:
    async def main(world: World) -> None:
        created = world.state.put(pod("a"), ADDED)
        informer, recorder = _informer(world)
        informer.start_from([created], 2)
        await informer.synced()
        assert recorder.take() == ""
        world.state.put(pod("a"))
        await world.clock.sleep(0.1)
        assert recorder.take() == "~a ."

    world.play(main)
    assert world.state.lists == []
    assert [data["rev"] for data in world.logged("watch.listed")] == [2]


def test_hears_nothing_after_it_was_stopped(world: World) -> None:
    async def main(world: World) -> None:
        informer, recorder = _informer(world)
        await informer.synced()
        informer.stop()
        informer.stop()
        world.state.put(pod("a"), ADDED)
        await world.clock.sleep(1)
        assert recorder.take() == "."

    world.play(main)
    assert world.state.cancels == 1
    assert world.logged("watch.closed") == [{"watch": "pods#1", "reason": "stopped"}]


def test_waits_for_a_server_that_is_not_there_yet(world: World) -> None:
    async def main(world: World) -> None:
        await world.runtime.crash("apiserver/0")
        informer, recorder = _informer(world)
        world.state.put(pod("a"), ADDED)
        informer.start()
        await world.clock.sleep(20)
        assert recorder.take() == ""
        await world.runtime.restart("apiserver/0")
        await informer.synced()
        assert list(informer.store) == ["default/a"]

    world.play(main)


def test_two_clients_of_one_actor_have_a_stream_each(world: World) -> None:
    async def main(world: World) -> None:
        other: clients.Client = type(world.client)(world.env, "apiserver/0")
        for client in (world.client, other):
            await informers.Informer(client, "pods").synced()
        await world.clock.sleep(0.1)

    world.play(main)
    assert world.state.watch_streams == 2


def test_the_same_seed_gives_the_same_log() -> None:
    async def main(world: World) -> None:
        informer, _ = _informer(world)
        await informer.synced()
        for n in range(5):
            world.state.put(pod(f"p{n}"), ADDED)
            await world.runtime.crash("apiserver/0")
            await world.runtime.restart("apiserver/0")
            await world.clock.sleep(3)

    logs = []
    for seed in (7, 7, 8):
        world = World(seed)
        world.play(main)
        logs.append(world.log)
    assert logs[0] == logs[1]
    assert logs[0] != logs[2]
