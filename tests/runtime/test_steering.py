"""Steering: a run in which messages come later because a chooser says so, or holds do."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kemu.emulated.client import message_labels
from kemu.errors import ScenarioError
from kemu.lab.scenario.loading import holds, loader
from kemu.lab.scenario.playing import plays, runner
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import MILLISECOND_NS, SECOND_NS
from kemu.runtime.holds import Hold, Label
from kemu.runtime.runlog.frames import FILE_NAME, Reader
from kemu.runtime.sim.simulation import SimRuntime
from kemu.runtime.sim.steering.choosers import Flight
from kemu.runtime.sim.steering.messages import Counts, Message
from kemu.runtime.sim.steering.steering import Steering
from tests.exploration.explaining import races
from tests.samples import one_in

ROOT = Path(__file__).resolve().parents[2]
RACE = ROOT / "scenarios" / "races" / "two-schedulers-one-node.yaml"
REPLICAS = ROOT / "scenarios" / "races" / "two-replicas-same-pods.yaml"
CRASH = ROOT / "scenarios" / "chaos" / "scheduler-crash.yaml"

Events = list[tuple[int, str, str, Any]]


def play(scenario: Scenario, steering: Steering | None) -> Events:
    """The events of a run, but for those about holds."""
    events: Events = []

    def append(time_ns: int, actor: str, kind: str, data: Any) -> None:
        if not kind.startswith("hold."):
            events.append((time_ns, actor, kind, repr(data)))

    recorder = plays.Recorder(append, scenario)
    runtime = SimRuntime(scenario.seed, recorder, scenario.timing, steering)
    plays.run(runtime, plays.drive(runtime, scenario, recorder, Heartbeats(scenario, "sim")))
    return events


class Uniform:
    """Up to 20 ms for every message."""

    def __init__(self, seed: int) -> None:
        self.stream = random.Random(seed)

    def delay_ns(self, message: Message) -> int:
        return self.stream.randrange(20 * MILLISECOND_NS) if self.stream.random() < 0.5 else 0


class Restless(Uniform):
    """The same, and moves every second message that is in flight to a receiver that has just heard something."""

    def begin(self, flight: Flight) -> None:
        self.flight = flight
        self.pending: list[Message] = []
        self.moved = 0

    def delay_ns(self, message: Message) -> int:
        self.pending.append(message)
        return super().delay_ns(message)

    def delivered(self, message: Message) -> None:
        self.pending.remove(message)
        for other in self.pending:
            if other.target == message.target and self.stream.random() < 0.5 and self.moved < 2000:
                self.moved += 1
                late_ns = self.flight.now_ns() - other.sent_ns
                self.flight.move(other, late_ns + self.stream.randrange(20 * MILLISECOND_NS))


@pytest.mark.parametrize("file", [RACE, REPLICAS, CRASH], ids=lambda file: file.stem)
class TestASteeredRun:
    def test_is_the_same_run_where_nothing_is_delayed(self, file: Path) -> None:
        scenario = loader.load(file)
        assert play(scenario, Steering(message_labels.Reader)) == play(scenario, None)

    @pytest.mark.parametrize("seed", range(0, 3, one_in(3)))
    def test_is_what_its_deviations_make_of_the_scenario(self, file: Path, seed: int) -> None:
        scenario = loader.load(file)
        steering = Steering(message_labels.Reader, Uniform(seed))
        chosen = play(scenario, steering)
        assert chosen != play(scenario, None)
        deviations = steering.deviations()
        assert len(deviations) > 10
        assert play(scenario, Steering(message_labels.Reader, holds=deviations)) == chosen

    @pytest.mark.parametrize("seed", range(0, 3, one_in(3)))
    def test_in_which_messages_were_moved_is_what_its_deviations_make_of_the_scenario(
        self, file: Path, seed: int
    ) -> None:
        scenario = loader.load(file)
        chooser = Restless(seed)
        steering = Steering(message_labels.Reader, chooser)
        chosen = play(scenario, steering)
        assert chooser.moved > 0
        assert play(scenario, Steering(message_labels.Reader, holds=steering.deviations())) == chosen

    def test_goes_through_a_file(self, file: Path) -> None:
        scenario = loader.load(file)
        steering = Steering(message_labels.Reader, Uniform(1))
        chosen = play(scenario, steering)
        again = with_holds(file, steering.deviations())
        assert again.holds == tuple(steering.deviations())
        assert play(again, Steering(message_labels.Reader, holds=again.holds)) == chosen


class Curious(Uniform):
    """The same, and asks what each message is about."""

    def begin(self, flight: Flight) -> None:
        self.flight = flight
        self.asked: list[tuple[Label, ...]] = []

    def delay_ns(self, message: Message) -> int:
        self.asked.append(self.flight.newest_labels())
        assert self.flight.newest_labels() == self.asked[-1]
        return super().delay_ns(message)

    def delivered(self, message: Message) -> None: ...


def test_each_message_is_read_once_by_whoever_wants_to_know(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = message_labels.Reader.labels
    read: list[Message] = []

    def counting(self: message_labels.Reader, message: Message) -> tuple[Label, ...]:
        read.append(message)
        return labels(self, message)

    monkeypatch.setattr(message_labels.Reader, "labels", counting)
    chooser = Curious(1)
    kept = play(loader.loads(races.STALE), Steering(message_labels.Reader, chooser, loader.loads(races.STALE).holds))
    assert kept
    assert len(read) == len(set(read))
    assert any(label.name == "red-pod" for labels in chooser.asked for label in labels)


@pytest.mark.parametrize("field", [field.name for field in api_pb2.Call.DESCRIPTOR.oneofs_by_name["request"].fields])
def test_every_call_of_a_session_has_labels(field: str) -> None:
    call = api_pb2.Call(id=1)
    request = getattr(call, field)
    request.SetInParent()
    if field == "commit":
        request.bindings.add(namespace="default", name="a")
    elif field not in ("bind", "evict"):
        (request.list if field == "delete_collection" else request).resource.resource = "pods"
    payload = api_pb2.SessionRequest(calls=[call]).SerializeToString()
    end: Any = Mock(is_client=True, method="/kemu.v1.Api/Session")
    message = Message("user", "apiserver/0", end, payload, 1, 0, 0)
    (label,) = message_labels.Reader().labels(message)
    assert (label.kind, label.what.split("-")[0]) == ("Pod", "bind" if field == "commit" else field.split("_")[0])


def test_a_run_does_not_wait_for_the_limit_of_a_hold_whose_event_has_come() -> None:
    """The event comes at 6.004 s; the limit would be 15.3 s."""
    scenario = loader.loads(races.STALE)
    events = play(scenario, Steering(message_labels.Reader, holds=scenario.holds))
    assert 6.004 < events[-1][0] / SECOND_NS < 12


def test_counts_are_of_all_messages_that_fit_a_label() -> None:
    counts = Counts()
    counts.add("a", "b", (Label("Pod", "", "bookmark"), Label("Pod", "web-0", "added")))
    counts.add("a", "b", (Label("Pod", "web-0", "added"), Label("Pod", "web-0", "bound")))
    counts.add("a", "b", (Label("", "", "bookmark"),))
    assert counts.of("a", "b", Label("Pod", "web-0", "added")) == 2
    assert counts.of("a", "b", Label("Pod", "web-0", "")) == 2
    assert counts.of("a", "b", Label("", "", "bookmark")) == 2
    assert counts.of("b", "a", Label("", "", "bookmark")) == 0


def with_holds(file: Path, found: Sequence[Hold]) -> Scenario:
    return loader.load(file, None, {"holds": [holds.as_data(hold) for hold in found]})


NEWS_OF_BLUE = {
    "message": {
        "from": "apiserver/0",
        "to": "scheduler/red/0",
        "event": {"kind": "Pod", "name": "red-pod", "what": "added"},
    },
    "until": {"actor": "scheduler/blue/0", "event": {"pod": "blue-pod", "what": "bound"}},
}


class TestAHold:
    def held(self, *items: Any) -> Events:
        scenario = loader.load(RACE, None, {"holds": list(items)})
        return play(scenario, Steering(message_labels.Reader, holds=scenario.holds))

    def when(self, events: Events, actor: str, kind: str) -> int:
        return next(time for time, who, what, _ in events if who == actor and what == kind and time)

    def test_keeps_a_message_until_something_has_happened(self) -> None:
        free, kept = self.held(), self.held(NEWS_OF_BLUE)
        assert self.when(free, "scheduler/red/0", "sched.attempt") < self.when(free, "scheduler/blue/0", "sched.bind")
        bound = self.when(kept, "scheduler/blue/0", "sched.bind")
        assert self.when(kept, "scheduler/red/0", "sched.queued") == bound

    def test_keeps_a_message_for_a_time(self) -> None:
        (free,) = {self.when(self.held(), "scheduler/red/0", "sched.queued")}
        hold = {"message": NEWS_OF_BLUE["message"], "for": "20ms"}
        assert self.when(self.held(hold), "scheduler/red/0", "sched.queued") == free + 20 * MILLISECOND_NS

    def test_lets_go_when_its_event_never_comes(self) -> None:
        never = {"actor": "scheduler/blue/0", "event": {"pod": "blue-pod", "what": "preempted"}}
        for limit, seconds in (({}, 10), ({"for": "3s"}, 3)):
            kept = self.held({"message": NEWS_OF_BLUE["message"], "until": never, **limit})
            queued = self.when(kept, "scheduler/red/0", "sched.queued")
            usual = self.when(self.held(), "scheduler/red/0", "sched.queued")
            assert queued == usual + (seconds * 1000 - 1) * MILLISECOND_NS

    def test_keeps_what_is_sent_behind_the_message(self) -> None:
        kept = self.held(NEWS_OF_BLUE)
        bound = self.when(kept, "scheduler/blue/0", "sched.bind")
        news = [time for time, who, what, _ in kept if who == "scheduler/red/0" and what == "watch.events" and time]
        assert news[0] == bound

    def test_of_an_unknown_message_keeps_nothing(self) -> None:
        message = {**NEWS_OF_BLUE["message"], "event": {"kind": "Pod", "name": "red-pod", "what": "added", "count": 9}}
        assert self.held({"message": message, "for": "20ms"}) == self.held()

    def test_is_told_in_the_run_log(self, tmp_path: Path) -> None:
        scenario = loader.load(RACE, None, {"holds": [NEWS_OF_BLUE]})
        kinds: dict[str, int] = {}
        runner.run(scenario, runner.Options(out=tmp_path / "run", progress=None))
        with Reader(tmp_path / "run" / FILE_NAME) as reader:
            for event in reader:
                kinds[event.kind] = kinds.get(event.kind, 0) + 1
        assert (kinds["hold.kept"], kinds["hold.released"]) == (1, 1)

    @pytest.mark.parametrize(
        ("item", "message"),
        [
            ({"message": NEWS_OF_BLUE["message"]}, "needs until, for, or both"),
            ({**NEWS_OF_BLUE, "until": {"event": {"what": "bount"}}}, "nothing that happens is called bount"),
            ({**NEWS_OF_BLUE, "until": {"actor": "scheduler/green", "event": {"what": "bound"}}}, "no actor is called"),
            ({"for": "2s"}, "message"),
            ({"message": {**NEWS_OF_BLUE["message"], "event": {}}, "for": "2s"}, "needs kind, name or what"),
        ],
    )
    def test_with_a_mistake_is_refused(self, item: Any, message: str) -> None:
        with pytest.raises(ScenarioError, match=message):
            loader.load(RACE, None, {"holds": [item]})
