"""A node under pressure: the recorded loops of the real manager, and that looks left out change nothing."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.kubelet.pressure import eviction_loops
from kemu.emulated.kubelet.usage import machines
from kemu.lab.conformance import case_files
from kemu.lab.conformance.kubelet import eviction_loops as recorded_loops
from tests.kubelet.pressured import Bench, Times, node, pod
from tests.samples import one_in

RECORDED = Path(__file__).parents[1] / "conformance" / "data" / "kubelet" / "eviction-loop.jsonl.gz"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Any]]:
    """Every look at the stats: (ms, summary)."""
    found: list[tuple[int, Any]] = []
    measure = machines.Meter.summary

    def summary(self: machines.Meter, now_ns: int, active: Any) -> Any:
        seen = measure(self, now_ns, active)
        found.append((now_ns // 1_000_000, seen))
        return seen

    monkeypatch.setattr(machines.Meter, "summary", summary)
    return found


class TestRecordedLoops:
    """The loop of the real manager, with pods that grow (recorded from Kubernetes)."""

    @pytest.mark.parametrize("part", range(0, 8, one_in(3)))
    def test_agree_without_the_looks_that_are_left_out(self, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(recorded_loops.Loop, "leaves_out", True)
        left_out = 0
        for case in list(case_files.read(RECORDED))[part::8]:
            found = recorded_loops.answer(case.question)
            # Those that take place see what the real ones saw.
            passes = found.pop("passes")
            assert all(one in case.expect["passes"] for one in passes), case.id
            left_out += len(case.expect["passes"]) - len(passes)
            assert found == {key: case.expect[key] for key in found}, case.id
        assert left_out > 100


MEBI = 1024 * 1024


class RandomNode:
    """Anything that can be configured, used, and go short; all of it from the seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.horizon_s = self.chance.choice([600, 600, 1500, 4500])

    def play(self) -> list[tuple[float, str, Any]]:
        chance = self.chance
        bench = Bench(
            node(memory="4096Mi", ephemeral_storage="20480Mi"),
            kubelet=self.kubelet(),
            machine={
                "nodefs": {"inodes": "10000"},
                "pids": "1000",
                **({"imagefs": {"capacity": "10240Mi"}} if chance.random() < 0.5 else {}),
                "splitImages": chance.random() < 0.3,
            },
            usage={
                key: self.curve(most)
                for key, most in (("memory", 1500), ("disk", 6000), ("images", 6000), ("deadContainers", 1000))
                if chance.random() < 0.5
            },
        )
        happenings: list[Any] = []
        for number in range(chance.randrange(1, 7)):
            name = f"p{number}"
            when = chance.choice([0, 0, round(chance.uniform(1, 300), 1)])
            happenings.append((when, partial(bench.offer, self.pod(name), self.times())))
            if chance.random() < 0.2:
                happenings.append((when + round(chance.uniform(20, 400), 1), partial(self.end, bench, name)))
        bench.play(self.horizon_s + 0.5, happenings)
        return bench.events

    def end(self, bench: Bench, name: str) -> None:
        if name in bench.workers and bench.workers[name].state == "active":
            bench.end(name)

    def kubelet(self) -> dict[str, Any]:
        chance = self.chance
        found: dict[str, Any] = {
            "evictionHard": {"memory.available": chance.choice(["100Mi", "10%", "0%"]), "nodefs.available": "10%"},
            "evictionPressureTransitionPeriod": chance.choice(["1s", "35s", "5m"]),
            "evictionMaxPodGracePeriod": chance.choice([0, 20]),
            "systemReserved": {"memory": chance.choice(["0", "500Mi"])},
        }
        if chance.random() < 0.5:
            found["evictionHard"].update(
                {"nodefs.inodesFree": "5%", "pid.available": "10%", "imagefs.available": "15%"}
            )
        if chance.random() < 0.5:
            found["evictionSoft"] = {"memory.available": "800Mi"}
            found["evictionSoftGracePeriod"] = {"memory.available": chance.choice(["5s", "30s", "2m"])}
        if chance.random() < 0.4:
            found["evictionMinimumReclaim"] = {"memory.available": "300Mi", "nodefs.available": "1Gi"}
        return found

    def times(self) -> Times:
        chance = self.chance
        return Times(chance.choice([0, 0, 2, 2.5]), chance.choice([0, 0, 3, None]), chance.choice([0, 0, 10, None]))

    def pod(self, name: str) -> Any:
        chance = self.chance
        usage: dict[str, Any] = {"memory": self.curve(chance.choice([500, 1500, 3000]))}
        for key, most in (("rootfs", 5000), ("logs", 9000)):
            if chance.random() < 0.4:
                usage[key] = self.curve(most)
        if chance.random() < 0.3:
            usage["inodes"] = self.curve(6000, "")
        if chance.random() < 0.3:
            usage["pids"] = self.curve(600, "")
        limits = {}
        if chance.random() < 0.3:
            limits["memory"] = chance.choice(["400Mi", "1Gi"])
        if chance.random() < 0.2:
            limits["ephemeral-storage"] = "3Gi"
        requests = {"memory": chance.choice(["100Mi", "1Gi"])} if chance.random() < 0.6 else {}
        return pod(name, usage, priority=chance.choice([0, 0, 10, 2_000_000_000]), requests=requests, limits=limits)

    def curve(self, most: int, unit: str = "Mi") -> Any:
        chance = self.chance

        def amount() -> str:
            return f"{chance.randrange(most)}{unit}"

        kind = chance.choice(["constant", "ramp", "ramp", "sine", "steps", "trace", "randomWalk"])
        if kind == "ramp":
            over, after = f"{chance.randrange(400)}s", f"{chance.randrange(60)}s"
            return {"ramp": {"from": amount(), "to": amount(), "over": over, "after": after}}
        if kind == "sine":
            period = f"{chance.choice([37, 60, 300, 5000])}s"
            return {"sine": {"mean": amount(), "amplitude": f"{most // 4}{unit}", "period": period}}
        if kind in ("steps", "trace"):
            seconds = sorted(chance.sample(range(600), chance.randrange(1, 5)))
            return {kind: [{"at": f"{second}s", "value": amount()} for second in seconds]}
        if kind == "randomWalk":
            walk = {"from": amount(), "step": f"{most // 20}{unit}", "every": f"{chance.randrange(1, 30)}s"}
            return {"randomWalk": {**walk, "max": f"{most}{unit}"}}
        return amount()


class TestLooksLeftOut:
    @pytest.mark.parametrize("seed", range(24))
    def test_change_nothing(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        found = RandomNode(seed).play()
        monkeypatch.setattr(eviction_loops.EvictionLoop, "leaves_out", False)
        assert found == RandomNode(seed).play()

    def test_something_happens_on_most_of_those_nodes(self) -> None:
        kinds = [{kind for _, kind, _ in RandomNode(seed).play()} for seed in range(10)]
        for kind in ("kubelet.pressure", "kubelet.evicting", "oom"):
            assert sum(kind in some for some in kinds) >= 3, kind

    def test_are_nearly_all(self, looks: list[tuple[int, Any]]) -> None:
        """Nothing until an hour has passed, then the one that matters."""
        bench = Bench(node(memory="4Gi"), kubelet={"evictionHard": {"memory.available": "1Gi"}})
        usage = {"memory": {"ramp": {"from": "1Gi", "to": "3500Mi", "over": "2h"}}}
        bench.play(3 * 3600, [(0, partial(bench.run, pod("a", usage)))])
        assert [name for _, name in bench.evictions()] == ["a"]
        assert 3600 < bench.evictions()[0][0] < 7200
        assert len(looks) < 60
