"""Clients that write through an API server while the store crashes at named steps, and what became of their writes.

``python -m tests.store.crashes SEEDS [FIRST]`` proves it for that many seeds and each fsync policy.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kemu import errors
from kemu.emulated.client.clients import Client
from kemu.lab.checks import registry
from kemu.messages.etcd import rpc_pb2, rpc_pb2_grpc
from kemu.runtime.env import ActorSpec
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import Recorder, sim
from tests.apiserver.apiserver_cluster import node

ANY_TIME = "any time"
STEPS = ("after-append", "after-fsync", "after-publish", ANY_TIME)
"""At any time is mostly during an fsync."""
CRASHES = 8
CONNECTED_S = 1.01
"""By then the API server has connected to the store again: it tries at once, and a second later."""
WRITERS = 8
TIMING: dict[str, Any] = {
    "apiLatency": {"uniform": {"min": 0.0002, "max": 0.002}},
    "storeLatency": {"uniform": {"min": 0.0002, "max": 0.002}},
    "fsync": {"uniform": {"min": 0.0005, "max": 0.004}},
}
PREFIX = b"/registry/nodes/"


@dataclass
class Outcome:
    """Of one run."""

    acknowledged: dict[str, int] = field(default_factory=dict)
    """Names of nodes, and the revision of their creation."""
    found: dict[str, int] = field(default_factory=dict)
    """The same, of what is in the store in the end."""
    steps: Counter[str] = field(default_factory=Counter)
    """At which the store crashed."""
    torn: int = 0
    """How often it found an unfinished frame at the end of its journal."""
    forgotten: int = 0
    """Transactions that nobody had been told of, and that did not survive."""
    verdicts: dict[str, tuple[bool | None, str]] = field(default_factory=dict)

    @property
    def lost(self) -> list[int]:
        """Revisions that were acknowledged, and are not there."""
        found = self.found
        return sorted(revision for name, revision in self.acknowledged.items() if found.get(name) != revision)

    @property
    def lost_by_verdict(self) -> int | None:
        """How many acknowledged writes were lost, as the check tells it; None: it does not tell."""
        holds, detail = self.verdicts["acknowledged-writes-survive"]
        if holds:
            return 0
        match = re.match(r"(\d+) acknowledged writes? (?:was|were) lost", detail)
        return int(match[1]) if match else None


async def _write(runtime: SimRuntime, number: int, outcome: Outcome, over: asyncio.Event) -> None:
    client = Client(runtime.env(f"writer{number}"), "apiserver/0")
    choose = random.Random(number)
    for attempt in range(100_000):
        if over.is_set():
            return
        await runtime.clock.sleep(choose.uniform(0, 0.004))
        name = f"n-{number}-{attempt}"
        try:
            # They need no namespace: without fsync the store may lose that too.
            created = await client.create(node(name))
        except (errors.ServiceUnavailable, errors.ServerTimeout, errors.TooManyRequests):
            continue
        outcome.acknowledged[name] = int(created.metadata.resourceVersion)


async def _crash(runtime: SimRuntime, seed: int, outcome: Outcome) -> None:
    choose = random.Random(f"crashes/{seed}")
    steps = [step for step in STEPS for _ in range(CRASHES // len(STEPS))]
    choose.shuffle(steps)
    for step in steps:
        await runtime.clock.sleep(choose.uniform(0.01, 0.03))
        await runtime.crash("store", None if step == ANY_TIME else step)
        outcome.steps[step] += 1
        await runtime.clock.sleep(choose.uniform(0.001, 0.02))
        await runtime.restart("store")
        await runtime.clock.sleep(CONNECTED_S)


def run(seed: int, fsync: str) -> Outcome:
    recorder = Recorder()
    outcome = Outcome()

    async def main(runtime: SimRuntime) -> None:
        over = asyncio.Event()
        writers = [asyncio.ensure_future(_write(runtime, number, outcome, over)) for number in range(WRITERS)]
        await _crash(runtime, seed, outcome)
        await runtime.clock.sleep(0.1)
        over.set()
        await asyncio.gather(*writers)
        request = rpc_pb2.RangeRequest(key=PREFIX, range_end=PREFIX[:-1] + b"0")
        answer = await rpc_pb2_grpc.KVStub(runtime.env("reader").dial("store")).Range(request)
        for pair in answer.kvs:
            outcome.found[pair.key.removeprefix(PREFIX).decode()] = pair.create_revision

    # So small that segments and snapshots come and go.
    settings = {"fsync": fsync, "segment_bytes": 20_000, "retain_revisions": 40}
    store = ActorSpec("store", "kemu.emulated.store.server:Store", settings)
    sim(
        main,
        seed,
        [store, ActorSpec("apiserver/0", "kemu.emulated.apiserver.server:ApiServer", {})],
        timing=TIMING,
        sink=recorder,
    )
    last = 0
    for _, _, kind, data in recorder.events:
        if kind == "store.txn":
            last = data["rev"]
        elif kind == "store.recovered":
            outcome.torn += data["torn_bytes"] > 0
            outcome.forgotten += last - data["rev"]
            last = data["rev"]
    _, results = registry.judge(Entry(*event) for event in recorder.events)
    outcome.verdicts = {result.id: (result.holds, result.detail) for result in results}
    return outcome


def prove(outcome: Outcome, fsync: str, seed: int) -> None:
    """Raises AssertionError."""
    told = f"fsync {fsync}, seed {seed}"
    holds, detail = outcome.verdicts["acknowledged-writes-survive"]
    assert outcome.verdicts["journal-is-intact"][0], (told, outcome.verdicts["journal-is-intact"])
    assert outcome.steps == dict.fromkeys(STEPS, CRASHES // len(STEPS)), told
    assert len(outcome.acknowledged) >= 30, (told, len(outcome.acknowledged))
    if fsync != "none":
        assert holds is True, (told, detail)
        assert outcome.lost == [], told
    else:
        assert holds is (not outcome.lost), (told, detail, outcome.lost)
        assert outcome.lost_by_verdict in (None, len(outcome.lost)), (told, detail, outcome.lost)


def main() -> None:
    seeds, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for fsync in ("batch", "always", "none"):
        torn = forgotten = acknowledged = lost = 0
        for seed in range(first, first + seeds):
            outcome = run(seed, fsync)
            prove(outcome, fsync, seed)
            torn += outcome.torn
            forgotten += outcome.forgotten
            acknowledged += len(outcome.acknowledged)
            lost += len(outcome.lost)
        assert torn > 0
        print(
            f"fsync {fsync}: {seeds} seeds, {CRASHES * seeds} crashes, {torn} of which tore the journal;"
            f" {acknowledged} acknowledged writes, {lost} lost; {forgotten} lost that nobody was told of"
        )


if __name__ == "__main__":
    main()
