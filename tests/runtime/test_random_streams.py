"""Streams of random numbers by name, and a run that goes on with those of another seed."""

from __future__ import annotations

import gc
from random import Random
from typing import Any

import pytest

from kemu.lab.exploration import executions
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import plays
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.runtime.env import SECOND_NS
from kemu.runtime.random_streams import EarlyStream, Redraw, Streams, random_stream
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.sim.simulation import SimRuntime

FAULTS = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: faults}
spec:
  seed: 1
  duration: 60s
  heartbeats: exact
  nodes: [{namePrefix: node-, count: 2}]
  chaos: [{id: cut, every: {uniform: {min: 2s, max: 6s}}, from: 1s, until: 55s, crash: {actor: kubelet/*}}]
"""

NODES = 40
LATENCIES = f"""
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {{name: latencies}}
spec:
  duration: 60s
  timing: realistic
  nodes: [{{namePrefix: node-, count: {NODES}}}]
"""


def test_a_changed_stream_is_that_of_the_other_seed() -> None:
    streams = Streams(1, may_change=True)
    old = streams.stream("link", "a", "b")
    assert old.random() == random_stream(1, "link", "a", "b").random()
    streams.change(2)
    assert old.random() == random_stream(2, "link", "a", "b").random()
    assert streams.stream("later").random() == random_stream(2, "later").random()


def test_faults_and_jitter_of_the_future_are_those_of_another_seed() -> None:
    scenario = loader.loads(FAULTS)
    events = executions.execute(scenario, keep_log=True).events
    again = executions.execute(scenario, keep_log=True, redraw=Redraw(20 * SECOND_NS, 7)).events
    assert _until(events, 20) == _until(again, 20)
    for kind in ("chaos.begin", "store.txn"):  # the kubelets renew their leases at times that they draw
        before, after = ([event.time_ns for event in log if event.kind == kind] for log in (events, again))
        assert before != after


def test_a_redrawn_run_is_the_same_each_time() -> None:
    scenario = loader.loads(FAULTS)
    redraw = Redraw(20 * SECOND_NS, 7)
    assert executions.execute(scenario, redraw=redraw).digest == executions.execute(scenario, redraw=redraw).digest


def _until(events: list[Entry], seconds: int) -> list[Entry]:
    return [event for event in events if event.time_ns <= seconds * SECOND_NS]


@pytest.mark.parametrize("put_away_after", [0, 1, 3, 700])
def test_an_early_stream_goes_on_where_it_was_put_away(put_away_after: int) -> None:
    def numbers(stream: Any) -> list[float]:
        return [stream.random(), stream.getrandbits(64), stream.random(), stream.getrandbits(7)]

    whole, early = random_stream(1, "a"), EarlyStream(lambda: random_stream(1, "a"))
    for _ in range(put_away_after):
        assert numbers(early) == numbers(whole)
    early.put_away()
    assert numbers(early) == numbers(whole)
    assert early.expovariate(1.0) == whole.expovariate(1.0)
    early.put_away()  # too late: nobody has counted what expovariate took
    assert numbers(early) == numbers(whole)


def test_a_stream_of_few_numbers_is_put_away_after_each_batch_and_goes_on() -> None:
    made = []

    def make() -> Random:
        made.append(random_stream(1, "a"))
        return made[-1]

    batches = EarlyStream(make)
    drawn = [number for _ in range(12) for number in batches.randoms(8)]
    whole = random_stream(1, "a")
    assert drawn == [whole.random() for _ in range(96)]
    # One for each of the first four batches; the fifth shows that many come.
    assert len(made) == 5


def test_actors_that_draw_little_hold_no_streams() -> None:
    """A stream takes 2.5 KiB: a kubelet would have four, for its connection and its disk."""
    scenario = loader.loads(LATENCIES)
    runtime = SimRuntime(1, lambda *_: None, scenario.timing)
    held: list[int] = []

    async def drive() -> None:
        await plays.launch(runtime, scenario, Heartbeats(scenario, "sim"))
        await runtime.begin()
        await runtime.run_until(30 * SECOND_NS)
        held.append(sum(isinstance(found, Random) for found in gc.get_objects()))
        await runtime.shutdown()

    gc.collect()
    before = sum(isinstance(found, Random) for found in gc.get_objects())
    runtime.run(drive())
    assert held[0] - before < NODES
