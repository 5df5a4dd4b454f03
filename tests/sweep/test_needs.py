"""What cells need: estimated, learned, and raised after a death; and how long the rest of a sweep takes."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kemu.lab.exploration.workers import Workers
from kemu.lab.sweep.cells import DONE, FAILED, Cell, CellRecord
from kemu.lab.sweep.engine import needs
from kemu.lab.sweep.engine.cell_tasks import CellSource, CellTask
from kemu.lab.sweep.engine.needs import CellNeeds
from kemu.lab.sweep.engine.sweeps import Sweep
from kemu.runtime.memory import Machine
from tests.sweep import test_sweeps

MIB = 1 << 20
SIZES = """\
apiVersion: kemu.dev/v1
kind: Experiment
metadata: {name: sizes}
spec:
  scenario:
    duration: 20s
    nodes: [{namePrefix: n-, count: 1, allocatable: {cpu: "4", memory: 1Gi, pods: "9"}}]
    workloads:
      - name: w
        arrivals: {poisson: {rate: 1/s}, count: 6}
        pods: {spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
        life: {runSeconds: 3}
  vary: {"nodes[0].count": [1, 9000]}
  seeds: 2
"""
"""The second variant needs 958 MiB by the estimate."""


class Known(CellNeeds):
    """Whose estimates are given, in MiB by variant."""

    def __init__(self, estimates: Mapping[int, int]) -> None:
        super().__init__(lambda cell: pytest.fail(f"{cell} has an estimate"))
        self._estimates = {index: size * MIB for index, size in estimates.items()}


def over(index: int, seconds: float, mib: int = 100, status: str = DONE) -> CellRecord:
    return CellRecord(Cell({}, index, 1), status, seconds=seconds, peak_bytes=mib * MIB)


def task(index: int, number: int = 0) -> CellTask:
    return CellTask(number, Cell({}, index, 1))


def test_an_estimate_counts_nodes_and_pods() -> None:
    source = CellSource.of(test_sweeps.experiment(SIZES))
    small, large = (needs.estimate_bytes(source.scenario(Cell({}, index, 1))) for index in (0, 1))
    assert large - small == 8999 * needs.NODE_KIB << 10
    assert small == needs.PROCESS_KIB + needs.NODE_KIB + 6 * needs.POD_KIB << 10


def test_what_was_measured_takes_the_place_of_the_estimate() -> None:
    known = Known({0: 1000, 1: 1000})
    assert known.memory_bytes(task(0)) == 1200 * MIB
    known.learn(over(0, 1.0, 200))
    known.learn(over(0, 1.0, 300))
    known.learn(over(0, 1.0, 900, FAILED))
    assert known.memory_bytes(task(0)) == 360 * MIB
    assert known.memory_bytes(task(1)) == 1200 * MIB


def test_only_a_cell_without_any_hope_of_room_is_refused() -> None:
    known = Known({0: 1000, 1: 2000})
    assert known.too_large(task(0), 700 * MIB) is None  # the estimate may be wrong
    refused = known.too_large(task(1), 700 * MIB)
    assert refused is not None
    assert not refused.is_over
    assert refused.record.detail == (
        "needs 2.3 GiB of memory, estimated from its nodes and pods, and no machine has more than 700 MiB"
    )
    known.learn(over(0, 1.0, 650))
    assert known.too_large(task(0), 700 * MIB) is None
    known.learn(over(0, 1.0, 750))
    refused = known.too_large(task(0), 700 * MIB)
    assert refused is not None
    assert "as other cells of its variant did" in refused.record.detail


def test_a_death_of_memory_doubles_the_claim_twice() -> None:
    known = Known({0: 100})
    claims = []
    for _ in range(2):
        claims.append(known.memory_bytes(task(0, 7)))
        assert known.out_of_memory(task(0, 7), claims[-1], 10_000 * MIB) is None
    claims.append(known.memory_bytes(task(0, 7)))
    assert claims == [120 * MIB, 240 * MIB, 480 * MIB]
    refused = known.out_of_memory(task(0, 7), claims[-1], 10_000 * MIB)
    assert refused is not None
    assert refused.record.detail == "ran out of memory 3 times, the last time with 480 MiB"
    assert known.memory_bytes(task(0, 8)) == 120 * MIB  # of the others nothing is known by that


def test_a_death_on_a_whole_machine_is_the_last() -> None:
    known = Known({0: 100})
    assert known.out_of_memory(task(0), 120 * MIB, 200 * MIB) is None
    assert known.memory_bytes(task(0)) == 200 * MIB
    refused = known.out_of_memory(task(0), 200 * MIB, 200 * MIB)
    assert refused is not None
    assert refused.record.detail == "ran out of memory with 200 MiB: no machine has more"


@pytest.mark.parametrize("seed", range(5))
def test_the_time_left_allows_for_variants_that_differ(seed: int) -> None:
    """Cells of 1 s and of 60 s: the range holds what comes, and is narrower than the mean of both would allow."""
    stream = random.Random(seed)

    def seconds(index: int) -> float:
        return (1.0, 60.0)[index] * stream.uniform(0.8, 1.2)

    known = Known({})
    for _ in range(5):
        known.learn(over(0, seconds(0)))
        known.learn(over(1, seconds(1)))
    left = {0: 40, 1: 4}
    came = sum(seconds(index) for index, count in left.items() for _ in range(count)) / 2
    found = known.left_s(left, running=2)
    assert found is not None
    low, high = found
    assert low < came < high < 44 * 30 / 2


def test_the_time_left_of_an_unknown_variant_is_between_the_others() -> None:
    known = Known({})
    assert known.left_s({0: 1}, 1) is None
    known.learn(over(0, 1.0))
    known.learn(over(0, 1.0))
    known.learn(over(1, 10.0))
    known.learn(over(1, 10.0))
    found = known.left_s({2: 10}, 1)
    assert found is not None
    assert found[0] == 0.0
    assert found[1] == pytest.approx(110.0)


def test_a_cell_larger_than_the_machine_fails_alone_and_is_tried_again_elsewhere(tmp_path: Path) -> None:
    experiment = test_sweeps.experiment(SIZES)
    with Workers(1, machine=Of(size_bytes=400 * MIB)) as workers, Sweep(experiment, tmp_path) as sweep:
        list(sweep.go(workers))
        assert [record.status for record in sweep.ordered()] == [DONE, DONE, FAILED, FAILED]
        told = sweep.ordered()[2].detail
        assert told.startswith("needs 958 MiB of memory, estimated from its nodes and pods")
        assert sweep.is_over
        assert sweep.write().stat().st_size
        measured = sweep.ordered()[0]
        assert 30 * MIB < measured.peak_bytes < 400 * MIB
        assert measured.cpu_s > 0
    with Sweep(experiment, tmp_path) as sweep:
        assert sweep.found == 2
        assert not sweep.is_over
        assert sweep.ordered()[0].peak_bytes == measured.peak_bytes


@pytest.mark.thorough
def test_a_cell_out_of_memory_is_tried_three_times(tmp_path: Path) -> None:
    (tmp_path / "hungry.py").write_text(HUNGRY)
    text = test_sweeps.MOODY.replace("moody:Moody", "hungry:Hungry")
    text = text.replace("nothing, raises, dies", f"nothing, {tmp_path / 'begun'}")
    with Workers(1) as workers, Sweep(test_sweeps.experiment(text, str(tmp_path / "e.yaml")), tmp_path / "o") as sweep:
        list(sweep.go(workers))
        records = sweep.ordered()
    assert [record.status for record in records] == [DONE, DONE, FAILED, FAILED]
    assert records[2].detail.startswith("ran out of memory 3 times, the last time with ")
    assert (tmp_path / "begun").read_text() == "." * 6


HUNGRY = """
from kemu.emulated.scheduler.framework import NodeFilterPlugin

class Hungry(NodeFilterPlugin):
    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.file = args.get("does")

    def filter(self, pod, node):
        if self.file != "nothing":
            with open(self.file, "a") as file:
                file.write(".")
            raise MemoryError
"""


@dataclass(frozen=True)
class Of(Machine):
    """So large, and nothing else needs memory there."""

    size_bytes: int = 0

    def total_bytes(self) -> int:
        return self.size_bytes

    def free_bytes(self) -> int:
        return self.size_bytes


def test_records_are_equal_whatever_they_took() -> None:
    assert over(0, 1.0, 5) == replace(over(0, 1.0, 5), cpu_s=3.0, peak_bytes=0, seconds=9.0)
