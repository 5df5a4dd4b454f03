"""Calibration: what is read from a run log, what is fitted to it, and the preset that a scenario takes."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.errors import KemuError, ScenarioError
from kemu.lab.real import calibration_pictures, calibrations, measurements
from kemu.lab.real.calibrations import LOADS, Found, Load
from kemu.lab.real.measurements import Measured
from kemu.lab.scenario.loading import loader
from kemu.runtime.runlog.events import typed
from tests.realkube import binaries

MS = 1_000_000
S = 1_000_000_000


def _created(at: int, uid: str, took: int = 3 * MS) -> tuple[int, str, str, dict[str, Any]]:
    return (
        at + took,
        "apiserver/0",
        "api.request",
        {"verb": "create", "resource": "pods", "uid": uid, "start": at, "by": "user"},
    )


def _attempt(start: int, end: int, uid: str, n: int = 1, evaluated: int = 100) -> tuple[int, str, str, dict[str, Any]]:
    return end, "scheduler/a/0", "sched.attempt", {"uid": uid, "start": start, "n": n, "evaluated": evaluated}


def _bound(start: int, end: int, uid: str) -> list[tuple[int, str, str, dict[str, Any]]]:
    return [
        (end, "scheduler/a/0", "sched.bind", {"uid": uid, "start": start}),
        (
            end,
            "apiserver/0",
            "api.request",
            {"verb": "bind", "resource": "pods", "uid": uid, "start": start, "by": "scheduler/a/0"},
        ),
    ]


def _of(events: list[tuple[int, str, str, dict[str, Any]]]) -> Measured:
    return measurements.of_events([(at, actor, kind, typed(kind, data)) for at, actor, kind, data in events])


def test_times_of_a_pod_are_read_from_the_log() -> None:
    found = _of(
        [
            _created(10 * MS, "p"),
            _attempt(14 * MS, 15 * MS, "p"),
            *_bound(16 * MS, 18 * MS, "p"),
            (40 * MS, "store", "process.used", {"cpu": 7}),
        ]
    )
    assert found.bindings == [2 * MS]
    assert (found.watches, found.cycles, found.calls) == ([MS], [(100, MS)], [MS])
    assert (found.pods, found.stopped, found.cpu) == (1, 40 * MS, {"store": 7})


def test_a_pod_that_was_tried_before_its_creation_was_answered_did_not_wait() -> None:
    assert _of([_attempt(11 * MS, 12 * MS, "p"), _created(10 * MS, "p")]).watches == [0]
    assert _of([_attempt(14 * MS, 15 * MS, "q"), _created(10 * MS, "p"), _attempt(15 * MS, 16 * MS, "p")]).watches == []


def test_a_pod_that_waited_for_another_ones_attempt_says_nothing_of_watches() -> None:
    found = _of(
        [
            _created(10 * MS, "p"),
            _created(10 * MS, "q"),
            _attempt(14 * MS, 15 * MS, "p"),
            _attempt(15 * MS, 16 * MS, "q"),
        ]
    )
    assert found.watches == [MS]
    again = _of([_created(10 * MS, "p"), _attempt(9 * S, 9 * S + MS, "p", n=2)])
    assert again.watches == []


def _deleted(at: int, by: str = "user") -> tuple[int, str, str, dict[str, Any]]:
    return (
        at,
        "apiserver/0",
        "api.request",
        {"verb": "delete", "resource": "pods", "uid": "x", "start": at - MS, "by": by},
    )


def test_what_a_controller_takes_is_read_from_the_log() -> None:
    """From the user's deletion of a pod to the first request that follows from it, without the ways between them."""

    def replaced(at: int, uid: str, by: str = "controller/replicaset") -> tuple[int, str, str, dict[str, Any]]:
        return at + 3 * MS, "apiserver/0", "api.request", {**_created(at, uid)[3], "by": by}

    found = _of(
        [
            _created(10 * MS, "p"),
            _attempt(14 * MS, 15 * MS, "p"),  # a watch: 1 ms
            *_bound(17 * MS, 19 * MS, "p"),  # a call: 2 ms
            replaced(30 * MS, "q"),  # nothing was deleted
            _deleted(40 * MS),
            _deleted(41 * MS, by="kubelet/node-1"),
            replaced(44 * MS, "r", by="user"),
            replaced(46 * MS, "s"),
            replaced(50 * MS, "t"),  # of another cause
            _deleted(60 * MS),
            replaced(62 * MS, "u"),
        ]
    )
    assert found.reactions == [6 * MS, 2 * MS]
    assert found.lags == [3 * MS, 0]
    assert Measured(reactions=[MS]).lags == []


def test_the_fit_has_a_lag_of_controllers_where_it_was_measured() -> None:
    found = [_found(load, 4 * number, 30 + number, 600, 0.6, load.nodes) for number, load in enumerate(LOADS, 1)]
    assert "controllerLag" not in calibrations.fit(found[:3]).timing
    with pytest.raises(KemuError, match="only 0 reactions of a controller were measured"):
        calibrations.fit(found)
    found[3].measured.reactions.extend(one + 3 * MS for one in _samples(9, 5, 20))
    preset = calibrations.fit(found)
    median = preset.timing["controllerLag"]["lognormal"]["median"]
    # 8 ms without a watch of 0.6 and a call of 0.3 ms
    assert float(median.removesuffix("ms")) == pytest.approx(7.1, rel=0.05)
    assert set(preset.sources) == set(preset.timing)
    assert ("10-nodes-4-replaced-per-second", "reaction (controllerLag)") in {
        row[:2] for row in calibrations.rows(found)
    }


def test_the_load_of_a_controller_is_a_scenario() -> None:
    (load,) = (one for one in LOADS if one.are_replaced)
    assert load not in calibrations.loads(is_guest=True)
    scenario = loader.of_data(calibrations.scenario_of(load, 1))
    assert list(scenario.controllers) == ["replicaset"]
    assert [event.what for event in scenario.events] == ["delete"] * load.pods


def _samples(seed: int, median_ms: float, p99_ms: float, count: int = 4000) -> list[int]:
    sigma = math.log(p99_ms / median_ms) / 2.3263478740408408
    stream = random.Random(seed)
    return [round(median_ms * MS * math.exp(stream.gauss(0, sigma))) for _ in range(count)]


def _found(load: Load, cpu_s: float, seconds: float, writes: int, cycle_ms: float, nodes: int) -> Found:
    cycles = [(nodes, one) for one in _samples(4, cycle_ms, 4 * cycle_ms)]
    measured = Measured(
        _samples(1, 2, 9), _samples(2, 0.3, 3), _samples(3, 0.6, 2), cycles, {"store": int(cpu_s * S)}, writes
    )
    measured.stopped = int(seconds * S)
    return Found(load, measured)


def test_the_fit_finds_what_the_samples_were_drawn_from() -> None:
    light = _found(Load(100, 300, 15), 30 * 0.1 + 600 * 0.004, 30, 600, 0.6, 100)
    heavy = _found(Load(100, 600, 40), 40 * 0.1 + 1800 * 0.004, 40, 1800, 0.6, 100)
    wide = _found(Load(500, 300, 15), 9, 30, 600, 1.0, 500)
    preset = calibrations.fit([light, heavy, wide])

    def of(key: str) -> list[float]:
        told = preset.timing[key]["lognormal"]
        return [float(told[part].removesuffix("us").removesuffix("ms")) for part in ("median", "p99")]

    assert of("fsync") == pytest.approx([2, 9], rel=0.1)
    assert of("apiLatency") == pytest.approx([300, 3], rel=0.1)
    assert of("watchLatency") == pytest.approx([600, 2], rel=0.1)
    per_node = preset.timing["schedulingCycle"]["perNode"]  # 0.4 ms for 400 nodes more
    assert float(per_node.removesuffix("us")) == pytest.approx(1, rel=0.05)
    assert preset.about["coreSecondsPerPod"] == pytest.approx(0.004)
    assert preset.about["coresWhenIdle"] == pytest.approx(0.1)
    assert set(preset.sources) == set(preset.timing)


def test_what_was_measured_is_drawn_beside_the_preset(tmp_path: Path) -> None:
    light = _found(Load(100, 300, 15), 4, 30, 600, 0.6, 100)
    heavy = _found(Load(100, 600, 40), 12, 40, 1800, 0.6, 100)
    found = [light, heavy, _found(Load(500, 300, 15), 9, 30, 600, 1.0, 500)]
    file = tmp_path / "measured.svg"
    calibration_pictures.draw(found, calibrations.fit(found), file)
    text = file.read_text()
    for part in ("600 pods at 40/s on 100 nodes", "watch (watchLatency)", ">preset<"):
        assert part in text
    with pytest.raises(KemuError, match=r"measured\.txt: a picture is \.svg or \.pdf or \.png"):
        calibration_pictures.draw(found, calibrations.fit(found), tmp_path / "measured.txt")


def test_few_samples_are_refused() -> None:
    few = Found(Load(1, 1, 1), Measured())
    with pytest.raises(KemuError, match="only 0 bindings were measured"):
        calibrations.fit([few, few, few])


def test_a_run_in_virtual_time_is_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(KemuError, match="not a run folder"):
        measurements.of_run(tmp_path)


PRESET = """
apiVersion: kemu.dev/v1
kind: TimingPreset
measured: {date: "2026-11-24"}
timing: {apiLatency: 300us, watchLatency: {lognormal: {median: 600us, p99: 2ms}}, clientLimits: kubernetes}
sources: {apiLatency: a stopwatch}
"""
SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: timed}
spec:
  duration: 1m
  timing: TIMING
  nodes: [{name: node-1, allocatable: {cpu: "1", memory: 1Gi, pods: "10"}}]
  workloads: []
"""


def _scenario(folder: Path, timing: str, preset: str = PRESET) -> Path:
    (folder / "measured.yaml").write_text(preset)
    file = folder / "timed.yaml"
    file.write_text(SCENARIO.replace("TIMING", timing))
    return file


@pytest.mark.parametrize("timing", ["measured.yaml", "{preset: measured.yaml}"])
def test_a_scenario_takes_the_times_of_a_file(tmp_path: Path, timing: str) -> None:
    scenario = loader.load(_scenario(tmp_path, timing))
    assert scenario.timing["apiLatency"] == 0.0003
    assert scenario.timing["clientLimits"] == "kubernetes"
    # The run folder needs no other file.
    resolved = yaml.safe_load(scenario.to_yaml())
    assert resolved["spec"]["timing"] == yaml.safe_load(PRESET)["timing"]


def test_what_the_scenario_states_counts_more(tmp_path: Path) -> None:
    scenario = loader.load(_scenario(tmp_path, "{preset: measured.yaml, apiLatency: 5ms, podStart: 1s}"))
    assert scenario.timing["apiLatency"] == 0.005
    assert scenario.timing["podStart"] == 1
    assert scenario.timing["watchLatency"] == {"lognormal": {"median": 0.0006, "p99": 0.002}}


def test_mistakes_are_told_in_the_file_where_they_stand(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"measured\.yaml:5:.*apiLatenzy.*did you mean apiLatency"):
        loader.load(_scenario(tmp_path, "measured.yaml", PRESET.replace("{apiLatency", "{apiLatenzy")))
    with pytest.raises(ScenarioError, match=r"timed\.yaml:7:.*other\.yaml cannot be read"):
        loader.load(_scenario(tmp_path, "other.yaml"))
    with pytest.raises(ScenarioError, match="kind is missing"):
        loader.load(_scenario(tmp_path, "measured.yaml", PRESET.replace("kind: TimingPreset", "")))
    with pytest.raises(ScenarioError, match="must be constant or realistic"):
        loader.load(_scenario(tmp_path, "realistik"))


def test_a_real_control_plane_is_measured(tmp_path: Path) -> None:
    binaries.require("etcd", "kube-apiserver", "kube-scheduler")
    measured = calibrations.play(Load(5, 80, 40), tmp_path, 1).measured
    assert len(measured.bindings) == len(measured.cycles) == 80
    # On a busy machine kemu sees many pods late; their times are not counted.
    assert 0 < len(measured.calls) <= 80, "none of pods that kemu saw late"
    assert all(one >= 0 for one in measured.calls)
    assert 0 < len(measured.watches) <= 80
    assert measured.pods == 80
    assert set(measured.cpu) == {"store", "apiserver/0", "scheduler/default-scheduler/0"}
    assert all(0 < used < 2 * measured.stopped for used in measured.cpu.values())
    assert all(one > 0 for one in measured.bindings)
