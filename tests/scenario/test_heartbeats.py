"""Heartbeats that are stated instead of sent: nobody can tell, and they are sent where somebody could."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.client import clients
from kemu.emulated.objects import heartbeats
from kemu.emulated.objects.conversion import convert
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import plays, runner
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.runtime.env import SECOND_NS
from kemu.runtime.runlog.frames import FILE_NAME, Reader, Writer
from kemu.runtime.sim.simulation import SimRuntime

SCENARIOS = Path(__file__).parents[2] / "scenarios"

LIVELY = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: heartbeats}
spec:
  seed: 5
  duration: 30m
  nodes:
  - {namePrefix: node-, count: 50, allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}
  apiServers: {replicas: 2}
  controllers: {node-lifecycle: {lag: 0.2s}, taint-eviction: {}, pod-gc: {}}
  workloads:
  - name: work
    arrivals: {every: 5s, count: 150}
    pods: {spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
    replaceFinished: true
  - name: huge
    arrivals: {count: 1}
    pods: {spec: {containers: [{name: main, resources: {requests: {cpu: "40"}}}]}}
  events:
  - {at: 100s, cordon: {node: node-20}}
  - {at: 110s, taint: {node: node-21, key: maintenance, effect: NoExecute}}
  - {at: 400s, removeNode: {node: node-30}}
  - {at: 500s, addNode: {name: node-60, allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}}
  - {at: 640s, addNode: {name: node-30, allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}}
  - {at: 900s, patch: {kind: Node, name: node-22, merge: {metadata: {labels: {color: red}}}}}
  chaos:
  - {at: 303s, for: 90s, crash: {actor: kubelet/node-3}}
  - {at: 611s, crash: {actor: "kubelet/node-1?", all: true, restart: false}}
  - {at: 800s, for: 70s, partition: {between: [kubelet/node-7, apiserver/*], all: true}}
  - {at: 1000s, for: 3s, partition: {between: [kubelet/node-8, apiserver/*], all: true}}
  - {at: 1100s, for: 5m, crash: {actor: "kubelet/node-4*", all: true}}
  - {at: 1250s, for: 10s, crash: {actor: "scheduler/*"}}
  - {at: 1440s, for: 12s, crash: {actor: apiserver/0}}
"""

READ_EVERY_S = 17.3


def _plain(obj: Any) -> Any:
    """Without the version, and without the statement."""
    data = convert.to_json(obj)
    metadata: dict[str, Any] = data["metadata"]  # type: ignore[assignment]
    metadata.pop("resourceVersion")
    if metadata.get("annotations", {}).pop(heartbeats.ANNOTATION, None) and not metadata["annotations"]:
        del metadata["annotations"]
    return data


class Play:
    """One run, with somebody who reads."""

    def __init__(self, text: str, mode: str, folder: Path) -> None:
        scenario = loader.loads(text, overrides={"heartbeats": mode})
        folder.mkdir()
        writer = Writer(folder / FILE_NAME, {})
        self.runtime = SimRuntime(scenario.seed, plays.Recorder(writer.append, scenario), scenario.timing)
        self.read: list[tuple[float, str, Any]] = []
        recorder = self.runtime.sink
        assert isinstance(recorder, plays.Recorder)
        self.runtime.run(self._play(scenario, recorder))
        writer.close()
        with Reader(folder / FILE_NAME) as log:
            self.events = [(event.time_ns, event.actor, event.kind, event.data) for event in log]

    async def _play(self, scenario: Any, recorder: plays.Recorder) -> None:
        reader = self.runtime.env("reader")
        reading = reader.spawn(self._keep_reading(clients.Client(reader, "apiserver/1"), scenario.duration_ns), "read")
        await plays.drive(self.runtime, scenario, recorder, Heartbeats(scenario, "sim"))
        reading.cancel()

    async def _keep_reading(self, client: clients.Client, end_ns: int) -> None:
        clock = self.runtime.env("reader").clock
        await clock.started()
        while clock.now_ns() < end_ns:
            await clock.sleep(READ_EVERY_S)
            for kind in ("leases", "nodes"):
                for version in ("", "0"):
                    found = await client.list(kind, resource_version=version)
                    self.read += [(clock.now_ns() / 1e9, kind, _plain(one)) for one in found.items]
            node = await client.get("nodes", "node-1")
            self.read.append((clock.now_ns() / 1e9, "node", _plain(node)))
            lease = await client.get("leases", "node-1", "kube-node-lease")
            self.read.append((clock.now_ns() / 1e9, "lease", _plain(lease)))

    def told(self) -> list[Any]:
        """What actors did, with its times; what the scheduler's cache holds bears revisions."""
        return _told(self.events)

    def writes(self, pattern: str, since_s: float = 0) -> list[float]:
        """Times of writes, in seconds, of keys that match."""
        return [
            time_ns / SECOND_NS
            for time_ns, _, kind, data in self.events
            if kind == "store.txn" and time_ns >= since_s * SECOND_NS
            for change in data["changes"]
            if re.search(pattern, change[1])
        ]


def _told(events: Iterable[tuple[int, str, str, Any]]) -> list[Any]:
    return [
        (time_ns, actor, kind, _without_revisions(data))
        for time_ns, actor, kind, data in events
        if kind.startswith(("node.", "taint.", "kubelet.", "sched.", "chaos.", "user.", "gc.", "actor.", "api."))
        and kind != "sched.cache"
    ]


def _without_revisions(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _without_revisions(value) for key, value in data.items() if key not in ("rev", "revs", "cache")}
    return data


@pytest.mark.thorough
def test_standing_and_exact_heartbeats_show_the_same(tmp_path: Path) -> None:
    standing, exact = (Play(LIVELY, mode, tmp_path / mode) for mode in ("standing", "exact"))
    assert standing.read == exact.read
    for left, right in zip(standing.told(), exact.told(), strict=False):
        assert left == right
    assert len(standing.told()) == len(exact.told())
    # Something happened, and the one way was not the other.
    unknown = [data["node"] for _, _, kind, data in standing.events if kind == "node.unknown"]
    assert {"node-3", "node-7", "node-15", "node-42"} <= set(unknown)
    assert not {"node-8", "node-1"} & set(unknown)
    assert any(kind == "taint.eviction" for _, _, kind, _ in standing.events)
    assert len(standing.writes("/leases/")) * 4 < len(exact.writes("/leases/"))


@pytest.mark.parametrize(
    "name",
    [
        "chaos/apiserver-crash",
        "chaos/kubelet-partition",
        "chaos/store-crash",
        "seeds/lost-node-replacements",
        "seeds/node-condition-oscillation",
        "seeds/soft-eviction-threshold",
    ],
)
def test_shipped_scenarios_run_the_same(name: str, tmp_path: Path) -> None:
    told = []
    for mode in ("standing", "exact"):
        scenario = loader.load(SCENARIOS / f"{name}.yaml", overrides={"heartbeats": mode})
        folder = tmp_path / mode
        runner.run(scenario, runner.Options(out=folder))
        with Reader(folder / FILE_NAME) as log:
            told.append(_told((event.time_ns, event.actor, event.kind, event.data) for event in log))
    assert told[0] == told[1]


def _standing(node: str, text: str, runtime: str = "sim") -> dict[str, Any] | None:
    """``text``: further keys of the spec."""
    head = "apiVersion: kemu.dev/v1\nkind: Scenario\nspec:\n  duration: 1h\n  nodes: [{namePrefix: n, count: 12}]\n"
    return Heartbeats(loader.loads(head + text), runtime).standing(node)


@pytest.mark.parametrize(
    "text",
    [
        "  heartbeats: exact",
        "  timing: {storeLatency: {uniform: {min: 1ms, max: 2ms}}}",
        "  apiServers: {cacheLag: 1s}",
    ],
)
def test_where_heartbeats_are_always_sent(text: str) -> None:
    assert _standing("n1", text) is None


def test_on_ray_heartbeats_are_sent() -> None:
    assert _standing("n1", "", "ray") is None


def test_how_long_a_heartbeat_takes_to_arrive() -> None:
    assert _standing("n1", "  timing: {apiLatency: 3ms, storeLatency: 2ms}") == {
        "restless": [],
        "arrives_ns": 7_000_000,
    }


@pytest.mark.parametrize(
    ("fault", "n1", "n2"),
    [
        ("{at: 200s, crash: {actor: kubelet/n1}}", [[190, 210]], []),
        ("{at: 200s, for: 40s, crash: {actor: kubelet/n1}}", [[190, 210]], []),
        ("{at: 200s, crash: {actor: kubelet/*}}", [[190, 210]], [[190, 210]]),
        ("{at: 200s, crash: {node: n1}}", [[190, 210]], []),
        ("{every: 200s, until: 500s, crash: {actor: kubelet/n1}}", [[190, 210], [390, 410]], []),
        ("{every: 15s, from: 60s, until: 500s, crash: {actor: kubelet/n1}}", [[50, 510]], []),
        ("{every: {exponential: {mean: 99s}}, crash: {actor: kubelet/n1}}", [[-10, 3610]], []),
        ("{at: 200s, for: 9s, partition: {between: [kubelet/n1, apiserver/0]}}", [[190, 219]], []),
        ("{at: 200s, partition: {between: [kubelet/n1, apiserver/0]}}", [[190, None]], []),
        ("{at: 200s, for: 9s, partition: {between: [scheduler/*, apiserver/0]}}", [], []),
        ("{at: 200s, for: 9s, partition: {between: [store, apiserver/0]}}", [[190, None]], [[190, None]]),
        ("{at: 200s, crash: {actor: apiserver/0}}", [[190, None]], [[190, None]]),
        ("{at: 200s, for: 9s, crash: {actor: apiserver/0}}", [[190, 269]], [[190, 269]]),
        ("{at: 200s, crash: {actor: scheduler/*}}", [], []),
        ("{at: 200s, crash: {actor: controller/*, all: true}}", [[190, None]], [[190, None]]),
    ],
)
def test_heartbeats_are_sent_around_faults(fault: str, n1: list[Any], n2: list[Any]) -> None:
    for node, expected in (("n1", n1), ("n2", n2)):
        standing = _standing(node, f"  controllers: [node-lifecycle]\n  chaos: [{fault}]")
        assert standing is not None
        assert [[None if ns is None else ns / SECOND_NS for ns in one] for one in standing["restless"]] == expected


def test_heartbeats_are_sent_around_events_of_the_node() -> None:
    events = """  events:
  - {at: 200s, removeNode: {node: n1}}
  - {at: 270s, addNode: {name: n1}}
  - {at: 400s, delete: {kind: Lease, name: n2, namespace: kube-node-lease}}
  - {at: 500s, cordon: {node: n3}}
  - {at: 600s, removeNode: {node: n4}}
  - {at: 640s, delete: {kind: Node, name: n4}}
"""

    def restless(node: str) -> list[Any]:
        standing = _standing(node, events)
        assert standing is not None
        return [[None if ns is None else ns / SECOND_NS for ns in one] for one in standing["restless"]]

    assert restless("n1") == [[190, 210]]
    assert restless("n2") == [[390, None]]
    assert restless("n3") == []
    assert restless("n4") == [[590, 610], [630, None]]


def test_an_idle_kubelet_writes_nothing_until_something_may_happen_to_it(tmp_path: Path) -> None:
    text = """
apiVersion: kemu.dev/v1
kind: Scenario
spec:
  duration: 1200s
  nodes: [{namePrefix: node-, count: 3, allocatable: {cpu: "4", memory: 8Gi, pods: "20"}}]
  apiServers: {replicas: 2}
  controllers: [node-lifecycle]
  chaos: [{at: 600s, for: 60s, crash: {actor: kubelet/node-1}}]
"""
    play = Play(text, "standing", tmp_path / "run")
    assert play.writes("/(leases/.*/node-[23]|minions/node-[23])", 1) == []
    written = play.writes("/leases/.*/node-1$", 1)
    # Just before the crash, and once at its return.
    assert all(590 <= at <= 600 or 660 <= at < 661 for at in written), written
    assert len(written) in (1, 2, 3)
    assert written[-1] >= 660
