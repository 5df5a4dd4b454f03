"""Event objects, from the recorder to the store and out of it again."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.client import recorders
from kemu.emulated.client.clients import Client
from kemu.emulated.client.recorders import NORMAL, WARNING, Recorder
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder as Log


class World:
    """Store, API server, and an actor that has something to tell."""

    def __init__(self) -> None:
        self.log = Log()
        self.runtime = SimRuntime(1, self.log)
        self.clock = self.runtime.clock
        self.env = self.runtime.env("teller")
        self.client = Client(self.env)

    def play(self, main: Callable[[World], Coroutine[Any, Any, None]], **apiserver: Any) -> None:
        async def play() -> None:
            await self.runtime.launch([ActorSpec("store", "kemu.emulated.store.server:Store", {"fsync": "none"})])
            await self.runtime.launch([ActorSpec("apiserver/0", "kemu.emulated.apiserver.server:ApiServer", apiserver)])
            await self.runtime.begin()
            await main(self)

        self.runtime.run(play())

    def recorder(self, level: str = "notable") -> Recorder:
        return Recorder(self.env, self.client, "default-scheduler", "0", level)

    async def at(self, seconds: float) -> None:
        await self.clock.sleep_until_ns(round(seconds * SECOND_NS))

    async def events(self) -> list[core_v1_pb2.Event]:
        return (await self.client.list("events")).items

    def writes(self) -> int:
        """How often an event was written."""
        return sum(
            change[1].startswith("/registry/events/") and change[0] == 0
            for data in self.log.of("store.txn")
            for change in data["changes"]
        )


def pod(name: str = "a", version: str = "7") -> core_v1_pb2.Pod:
    return core_v1_pb2.Pod(
        metadata={"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": version}
    )


def failed(recorder: Recorder, note: str = "no", regarding: Any = None) -> None:
    recorder.event(regarding or pod(), WARNING, "FailedScheduling", "Scheduling", note)


def test_an_event_says_who_did_what_to_whom_and_why() -> None:
    world = World()

    async def main(world: World) -> None:
        await world.at(5)
        world.recorder().event(pod(), NORMAL, "Preempted", "Preempting", "Preempted by pod b", pod("b", "9"))
        assert world.writes() == 0  # nobody waited
        await world.at(6)
        (event,) = await world.events()
        data = convert.to_json(event)
        assert data["metadata"].pop("name") == f"a.{(world.clock.epoch_unix_s + 5) * SECOND_NS:x}"
        del data["metadata"]
        common = {"kind": "Pod", "apiVersion": "v1", "namespace": "default"}
        assert data == {
            "involvedObject": {**common, "name": "a", "uid": "uid-a", "resourceVersion": "7"},
            "related": {**common, "name": "b", "uid": "uid-b", "resourceVersion": "9"},
            "reason": "Preempted",
            "action": "Preempting",
            "message": "Preempted by pod b",
            "type": "Normal",
            "eventTime": "2000-01-01T00:00:05.000000Z",
            "reportingComponent": "default-scheduler",
            "reportingInstance": "default-scheduler-0",
        }

    world.play(main)


def test_equal_events_are_a_series_that_is_written_twice_and_once_more_when_it_is_over() -> None:
    """Whatever the note says; the first one stays. At 12 min the series has rested for more than six."""
    world = World()

    async def main(world: World) -> None:
        recorder = world.recorder()
        for second in range(10):
            await world.at(second)
            failed(recorder, f"for the {second}th time")
        await world.at(20)
        (event,) = await world.events()
        assert (event.message, event.series.count) == ("for the 0th time", 2)
        assert world.writes() == 2
        await world.at(719)
        assert world.writes() == 2
        await world.at(721)
        (event,) = await world.events()
        assert event.series.count == 10
        assert convert.to_json(event)["series"]["lastObservedTime"] == "2000-01-01T00:00:09.000000Z"
        assert world.writes() == 3
        failed(recorder, "anew")
        await world.at(722)
        assert [event.message for event in await world.events()] == ["for the 0th time", "anew"]

    world.play(main)


def test_a_single_event_is_forgotten_after_its_window() -> None:
    world = World()

    async def main(world: World) -> None:
        recorder = world.recorder()
        failed(recorder)
        await world.at(719)
        failed(recorder)  # at 6 min it had not rested for longer than that
        await world.at(1500)
        failed(recorder)
        await world.at(1501)
        assert [event.series.count for event in await world.events()] == [2, 0]

    world.play(main)


@pytest.mark.parametrize(
    "other",
    [
        lambda recorder: failed(recorder, regarding=pod(version="8")),
        lambda recorder: failed(recorder, regarding=pod("b")),
        lambda recorder: recorder.event(pod(), NORMAL, "FailedScheduling", "Scheduling", "no"),
        lambda recorder: recorder.event(pod(), WARNING, "Other", "Scheduling", "no"),
        lambda recorder: recorder.event(pod(), WARNING, "FailedScheduling", "Other", "no"),
        lambda recorder: recorder.event(pod(), WARNING, "FailedScheduling", "Scheduling", "no", pod("b")),
    ],
    ids=["a changed object", "another object", "type", "reason", "action", "related"],
)
def test_what_differs_is_no_series(other: Callable[[Recorder], None]) -> None:
    world = World()

    async def main(world: World) -> None:
        recorder = world.recorder()
        failed(recorder)
        other(recorder)
        await world.at(1)
        assert [event.HasField("series") for event in await world.events()] == [False, False]

    world.play(main)


def test_a_series_that_goes_on_is_written_anew_every_half_hour_and_so_outlives_others() -> None:
    world = World()

    async def main(world: World) -> None:
        recorder = world.recorder()
        failed(recorder, regarding=pod("quiet"))
        for minute in range(75):
            await world.at(60 * minute)
            failed(recorder)
        await world.at(75 * 60)
        (event,) = await world.events()
        assert (event.involvedObject.name, event.series.count) == ("a", 61)

    world.play(main)


def test_kubelets_and_controllers_write_the_older_form_where_all_events_are_written() -> None:
    """As client-go's ``tools/record``: every repetition is written, and another note is another event."""
    world = World()

    async def main(world: World) -> None:
        recorder = Recorder(world.env, world.client, "kubelet", "node-1", "all")
        for second, image in ((1, "x"), (2, "y"), (3, "x"), (4, "x")):
            await world.at(second)
            changed = pod()
            changed.metadata.resourceVersion = str(second)  # It is the same pod.
            recorder.event(changed, NORMAL, "Pulled", "Pulled", f"pulled {image}", field_path="spec.containers{c}")
        await world.at(5)
        first, second_ = sorted(await world.events(), key=lambda event: event.message)
        data = convert.to_json(first)
        del data["metadata"], data["involvedObject"]
        assert data == {
            "reason": "Pulled",
            "message": "pulled x",
            "type": "Normal",
            "source": {"component": "kubelet", "host": "node-1"},
            "firstTimestamp": "2000-01-01T00:00:01Z",
            "lastTimestamp": "2000-01-01T00:00:04Z",
            "count": 3,
            "reportingComponent": "kubelet",
            "reportingInstance": "node-1",
        }
        assert (second_.message, second_.count) == ("pulled y", 1)
        of_scheduler = Recorder(world.env, world.client, "mine", "0", "all", schedules=True)
        of_scheduler.event(pod("b"), NORMAL, "Scheduled", "Binding", "assigned", routine=True)
        await world.at(6)
        assert [event.HasField("eventTime") for event in await world.events()] == [False, False, True]

    world.play(main)


def test_which_events_are_written() -> None:
    def written(level: str) -> list[str]:
        world = World()
        found: list[str] = []

        async def main(world: World) -> None:
            recorder = world.recorder(level)
            failed(recorder)
            recorder.event(pod(), NORMAL, "Scheduled", "Binding", "assigned", routine=True)
            recorder.event(pod(), NORMAL, "Preempted", "Preempting", "preempted")
            await world.at(1)
            found.extend(event.reason for event in await world.events())

        world.play(main)
        return found

    assert written("all") == ["FailedScheduling", "Scheduled", "Preempted"]
    assert written("notable") == ["FailedScheduling", "Preempted"]
    assert written("none") == []
    with pytest.raises(ValueError, match="'some' is not one of: notable, all, none"):
        written("some")


def test_while_the_api_server_is_away_events_are_tried_again() -> None:
    world = World()

    async def main(world: World) -> None:
        recorder = world.recorder()
        await world.runtime.crash("apiserver/0")
        failed(recorder)
        await world.at(25)
        await world.runtime.restart("apiserver/0")
        await world.at(45)
        (event,) = await world.events()
        assert convert.to_json(event)["eventTime"] == "2000-01-01T00:00:00.000000Z"
        await world.runtime.crash("apiserver/0")
        failed(recorder, regarding=pod("b"))
        await world.at(600)

    world.play(main)
    (lost,) = world.log.of("client.event_lost")
    assert (lost["reason"], lost["namespace"]) == ("FailedScheduling", "default")


def test_what_the_api_server_refuses_is_not_tried_again() -> None:
    world = World()

    async def main(world: World) -> None:
        stray = pod()
        stray.metadata.namespace = "nowhere"
        failed(world.recorder(), regarding=stray)
        await world.at(60)
        assert await world.events() == []

    world.play(main)
    assert len(world.log.of("api.refused")) == 1
    (lost,) = world.log.of("client.event_lost")
    assert 'namespaces "nowhere" not found' in lost["message"]


def test_long_notes_and_names_are_cut() -> None:
    assert recorders.shorten("x" * 1024) == "x" * 1024
    assert recorders.shorten("x" * 1025) == "x" * 1020 + " ..."
    assert recorders.shorten("é" * 600) == "é" * 510 + " ..."
    assert recorders.event_name("a", 255) == "a.ff"
    long = recorders.event_name("a" * 253, 255)
    assert (len(long), long[-3:]) == (253, ".ff")


def test_events_expire() -> None:
    world = World()

    async def main(world: World) -> None:
        recorder = world.recorder()
        failed(recorder)
        await world.at(300)
        failed(recorder, regarding=pod("b"))
        await world.at(599)
        assert len(await world.events()) == 2
        await world.at(651)
        assert [event.involvedObject.name for event in await world.events()] == ["b"]
        await world.at(951)
        assert await world.events() == []

    world.play(main, event_ttl_s=600)


def test_of_too_many_events_the_oldest_go() -> None:
    world = World()

    async def main(world: World) -> None:
        recorder = world.recorder()
        for number in range(300):
            failed(recorder, regarding=pod(f"p{number}"))
        await world.at(1)
        assert len(await world.events()) == 300
        await world.at(30)
        kept = {event.involvedObject.name for event in await world.events()}
        assert kept == {f"p{number}" for number in range(290, 300)}

    world.play(main, most_events=10)


def test_a_recorder_of_the_older_form_knows_the_latest_events_only() -> None:
    world = World()

    async def main(world: World) -> None:
        recorder = recorders.Recorder(world.env, world.client, "kubelet", "n1", recorders.ALL)
        for number in range(recorders.MOST_KNOWN + 10):
            recorder.event(pod(f"p{number}"), recorders.NORMAL, "Started", "Started", "Started container")
            recorder.event(pod("p0"), recorders.NORMAL, "Started", "Started", "Started container")
            if number % 100 == 0:
                await world.at(number / 100)
        assert len(recorder._known) == recorders.MOST_KNOWN
        counts = {known.event().involvedObject.name: known.count for known in recorder._known.values()}
        assert counts["p0"] > recorders.MOST_KNOWN
        assert "p1" not in counts

    world.play(main)


def test_the_api_server_wants_events_to_be_complete() -> None:
    world = World()

    async def main(world: World) -> None:
        event = core_v1_pb2.Event(metadata={"name": "e", "namespace": "default"}, eventTime={"seconds": 1})
        event.message = "x" * 1025
        with pytest.raises(errors.Invalid) as refused:
            await world.client.create(event)
        fields = [cause.field for cause in refused.value.causes]
        assert list(dict.fromkeys(fields)) == [
            "reportingController", "reportingInstance", "action", "reason", "message",
        ]  # fmt: skip
        event = core_v1_pb2.Event(metadata={"name": "e", "namespace": "kube-system"})
        with pytest.raises(errors.Invalid, match=r"does not match event\.namespace"):
            await world.client.create(event)

    world.play(main)
