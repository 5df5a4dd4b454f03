"""The run log of several machines: what is judged does not depend on the order of arrival, nor on their clocks.

Runs in virtual time stand in for the cells: their logs are taken apart by actor and stamped anew, as clocks would that
are up to two seconds apart, and brought together again as on Ray.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgpack
import pytest

from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import judging, runner
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.env import MILLISECOND_NS, SECOND_NS
from kemu.runtime.host import wall_clocks
from kemu.runtime.ray.driver.logs import causes, merges, wall_offsets
from kemu.runtime.runlog.events import typed
from kemu.runtime.runlog.frames import FILE_NAME, Entry, Reader
from tests.ray.world import Events

CELLS = ("user", "store", "apiserver", "scheduler", "controller", "kubelet")
"""By what the names of their actors begin with; what is in none of them is in the driver's, as the user is."""
MOST_SKEW_NS = 2 * SECOND_NS
MOST_LATENCY_NS = MILLISECOND_NS


class Run:
    """In virtual time, as if it had been made on Ray."""

    def __init__(self, name: str, folder: Path) -> None:
        self.scenario: Scenario = loader.variants(loader.load(catalog.shipped()[name]))[-1][1]
        verdict = runner.run(self.scenario, runner.Options(out=folder, runtime="sim")).verdict
        self.end = judging.End(verdict["ended"], round(verdict["virtual_s"] * SECOND_NS))
        with Reader(folder / FILE_NAME) as reader:
            # On Ray nobody knows that nothing is under way any more.
            self.events = [
                event._replace(data={**event.data, "still": False}) if event.kind == "run.ended" else event
                for event in reader
            ]

    def outcome(self, events: Iterable[Entry | tuple[int, str, str, Any]]) -> Any:
        judge = judging.Judge(self.scenario)
        for event in events:
            judge.feed(*event)
        judged = judge.conclude(self.end)
        workloads = {pod.key: (pod.workload, pod.replaces) for pod in judged.history.pods.values()}
        checks = {check.id: (check.holds, check.detail if check.holds is False else "") for check in judged.checks}
        return judged.verdict, checks, [judgement.holds for judgement in judged.judgements], workloads


def cell_of(actor: str) -> int:
    kind = actor.partition("/")[0]
    return CELLS.index(kind) if kind in CELLS else 0


def merge(
    events: Iterable[Entry], ahead_ns: Mapping[int, int], random_: random.Random
) -> list[tuple[int, str, str, Any]]:
    """As each cell stamps its events, in the order in which a driver gets hold of them."""
    streams: list[list[tuple[int, bytes]]] = [[] for _ in CELLS]
    for time_ns, actor, kind, data in events:
        cell = cell_of(actor)
        # During set-up no clock runs.
        stamp_ns = max(0, time_ns + ahead_ns.get(cell, 0)) if time_ns else 0
        streams[cell].append((stamp_ns, msgpack.packb((stamp_ns, actor, kind, data))))
    merged = Events()
    merger = merges.LogMerger(merged)
    for cell in range(len(CELLS)):
        merger.open((cell, 1))
    while any(streams):
        cell = random_.choice([cell for cell, stream in enumerate(streams) if stream])
        count = random_.randint(1, 40)
        piece, streams[cell] = streams[cell][:count], streams[cell][count:]
        merger.add((cell, 1), [payload for _, payload in piece], piece[-1][0])
        if not streams[cell]:
            merger.close((cell, 1))
    merger.flush()
    assert not merger.late
    return list(merged)


@pytest.fixture(scope="module", params=["seeds/preemption-example-1", "chaos/store-crash"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(request.param, tmp_path_factory.mktemp("run"))


@pytest.mark.parametrize("seed", range(3))
def test_what_caused_an_event_comes_before_it_whatever_the_clocks_show(run: Run, seed: int) -> None:
    choose = random.Random(seed)
    skews = {cell: choose.randint(-MOST_SKEW_NS, MOST_SKEW_NS) for cell in range(1, len(CELLS))}
    merged = merge(run.events, skews, choose)
    revision, before_ns = 1, 0
    for time_ns, actor, kind, data in merged:
        assert time_ns >= before_ns
        known = causes.KNOWING[kind](typed(kind, data)) if kind in causes.KNOWING else 0
        assert known <= revision, f"{actor} knows of what has not happened: {kind} {data}"
        before_ns = time_ns
        if kind == "store.txn":
            revision = max(revision, data["rev"])
    for cell in range(len(CELLS)):
        own = [event[1:] for event in run.events if cell_of(event.actor) == cell]
        assert [event[1:] for event in merged if cell_of(event[1]) == cell] == own


def test_the_verdict_does_not_depend_on_the_order_of_arrival(run: Run) -> None:
    expected = run.outcome(run.events)
    for seed in range(3):
        assert run.outcome(merge(run.events, {}, random.Random(seed))) == expected


@pytest.mark.parametrize("seed", range(3))
def test_the_verdict_does_not_depend_on_the_clocks_of_machines(run: Run, seed: int) -> None:
    """Of what they are apart remains only what nobody can measure."""
    choose = random.Random(seed)
    remaining: dict[int, int] = {}
    told = []
    for cell in range(1, len(CELLS)):
        skew_ns = choose.randint(-MOST_SKEW_NS, MOST_SKEW_NS)
        offset = asyncio.run(measured(skew_ns, choose))
        remaining[cell] = skew_ns - offset.ahead_ns
        assert abs(remaining[cell]) <= offset.within_ns <= MOST_LATENCY_NS
        told.append((0, f"cell/{CELLS[cell]}", "process.clock", offset._asdict()))
    assert any(remaining.values())
    merged = merge(run.events, remaining, choose)
    assert run.outcome([*told, *merged]) == run.outcome(run.events)


async def measured(skew_ns: int, choose: random.Random) -> wall_offsets.Offset:
    now_ns = 0

    def pass_time() -> None:
        nonlocal now_ns
        now_ns += choose.randint(MOST_LATENCY_NS // 10, MOST_LATENCY_NS)

    async def ask() -> int:
        pass_time()
        shown_ns = now_ns + skew_ns
        pass_time()
        return shown_ns

    return await wall_offsets.measure(ask, lambda: now_ns)


def test_clocks_that_cannot_be_told_apart_are_one() -> None:
    async def ask() -> int:
        return time.time_ns()

    assert asyncio.run(wall_offsets.measure(ask)).ahead_ns == 0


@pytest.mark.parametrize("skew_s", [-2, 2])
def test_virtual_time_begins_at_one_instant_whatever_time_it_is_there(
    monkeypatch: pytest.MonkeyPatch, skew_s: int
) -> None:
    async def main() -> None:
        epoch_ns = time.time_ns()
        here, there = wall_clocks.DilatedClock(), wall_clocks.DilatedClock()
        here.configure(epoch_unix_ns=epoch_ns, speed=1.0, epoch_unix_s=0)
        real_ns = time.time_ns

        async def ask() -> int:
            return real_ns() + skew_s * SECOND_NS

        offset = await wall_offsets.measure(ask, real_ns)
        monkeypatch.setattr(wall_clocks.time, "time_ns", lambda: real_ns() + skew_s * SECOND_NS)
        there.configure(epoch_unix_ns=epoch_ns + offset.ahead_ns, speed=1.0, epoch_unix_s=0)
        monkeypatch.undo()
        assert abs(there.now_ns() - here.now_ns()) < SECOND_NS // 10

    asyncio.run(main())


def test_an_etcd_that_an_api_server_records_makes_no_difference(tmp_path: Path) -> None:
    """The API server hears of writes later than those who made them, and than it answered itself."""
    run = Run("chaos/cut-watches", tmp_path)
    choose = random.Random(0)
    recorded: list[Entry] = []
    heard_ns = 0
    for event in run.events:
        if event.kind == "store.txn":
            heard_ns = max(heard_ns, event.time_ns + choose.randint(0, 50 * MILLISECOND_NS))
            recorded.append(event._replace(time_ns=heard_ns, actor="apiserver/0"))
        elif cell_of(event.actor) != CELLS.index("store"):
            recorded.append(event)
    recorded.sort(key=lambda event: event.time_ns)
    merged = merge(recorded, {}, choose)
    *_, judgements, workloads = run.outcome(merged)
    *_, expected, intended = run.outcome(run.events)
    assert workloads == intended
    assert judgements == expected
    assert made_late(recorded)
    assert not made_late(merged)


def made_late(events: Iterable[Entry | tuple[int, str, str, Any]]) -> list[str]:
    """The user's pods of which the log tells before it has the transaction that made them."""
    values = b""
    late = []
    for _, _, kind, data in events:
        if kind == "store.txn":
            values += b"".join(value or b"" for _, _, value, *_ in data["changes"])
        elif kind == "user.pod" and data["uid"].encode() not in values:
            late.append(data["pod"])
    return late


def packed(time_ns: int, actor: str, kind: str, **data: Any) -> bytes:
    payload: bytes = msgpack.packb((time_ns, actor, kind, data))
    return payload


def test_a_cause_that_nobody_tells_of_is_not_waited_for_for_ever() -> None:
    """An API server that records a real etcd may learn of a revision late, or never."""
    events = Events()
    merger = merges.LogMerger(events, patience_ns=10)
    for cell in (0, 1):
        merger.open((cell, 1))
    merger.add((0, 1), [packed(1, "user", "client.got", rev=7), packed(2, "user", "user.pod", uid="a")], 8)
    merger.add((1, 1), [], 8)
    assert not events
    merger.add((0, 1), [], 20)
    merger.add((1, 1), [], 20)
    assert [kind for _, _, kind, _ in events] == ["client.got", "user.pod"]


def test_what_still_waits_at_the_end_is_handed_on_in_the_order_of_causes() -> None:
    events = Events()
    merger = merges.LogMerger(events)
    for cell in (0, 1, 2):
        merger.open((cell, 1))
    merger.add((0, 1), [packed(1, "user", "client.got", rev=9), packed(2, "user", "user.pod", uid="a")], 3)
    merger.add((1, 1), [packed(50, "apiserver/0", "store.txn", rev=5, changes=[])], 51)
    merger.add((2, 1), [packed(3, "kubelet/a", "client.got", rev=5)], 4)
    merger.flush()
    assert [(actor, kind) for _, actor, kind, _ in events] == [
        ("apiserver/0", "store.txn"),
        ("kubelet/a", "client.got"),
        ("user", "client.got"),
        ("user", "user.pod"),
    ]


def test_who_records_an_etcd_again_tells_the_log_nothing_twice() -> None:
    """An API server that came back tells of all that the etcd remembers. kemu's own store never does that, but may give
    a revision anew that it has lost."""
    for who, told in (("apiserver/0", [1, 2, 3]), ("store", [1, 2, 1, 2, 3])):
        events = Events()
        merger = merges.LogMerger(events)
        merger.open((0, 1))
        merger.add((0, 1), [packed(rev, who, "store.txn", rev=rev, changes=[]) for rev in (1, 2)], 5)
        merger.close((0, 1))
        merger.open((0, 2))
        merger.add((0, 2), [packed(5 + rev, who, "store.txn", rev=rev, changes=[]) for rev in (1, 2, 3)], 20)
        merger.flush()
        assert [data["rev"] for _, _, _, data in events] == told
