"""Streams of pods: when they come, how they live, and that one changes nothing in another."""

from __future__ import annotations

import functools
import itertools
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.lab.scenario.arrivals import arrival_times
from kemu.lab.scenario.format.workloads import Arrivals, Poisson, Ramp
from kemu.lab.scenario.loading.objects import manifests
from kemu.lab.scenario.playing import runner, workloads
from kemu.lab.scenario.scenarios import Scenario
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS
from kemu.runtime.random_streams import random_stream
from tests.scenario.texts import load

S = SECOND_NS


def times(arrivals: Arrivals, seed: int = 0) -> list[int]:
    return list(arrival_times(arrivals, random.Random(seed)))


def stream(scenario: Scenario, name: str, seed: int = 1) -> workloads.Stream:
    (found,) = [workload for workload in scenario.workloads if workload.name == name]
    return workloads.Stream(workloads.plain(found), seed, functools.partial(random_stream, seed))


def pods(found: workloads.Stream) -> list[tuple[int, core_v1_pb2.Pod]]:
    result = []
    while (when_ns := found.next_ns()) is not None:
        result.append((when_ns, found.arrival()[1]))
    return result


def lives(found: workloads.Stream) -> list[tuple[int, dict[str, str]]]:
    return [(when_ns, dict(pod.metadata.annotations)) for when_ns, pod in pods(found)]


TEMPLATE = "pods: {metadata: {labels: {app: x}}, spec: {containers: [{name: m}]}}"
LIFE = "life: {runSeconds: {exponential: {mean: 60}}, shutdownSeconds: {uniform: {min: 1, max: 20}}, exitCode: 3}"


def process_of(name: str, first: float, last: float) -> dict[str, Any]:
    return {
        "poisson": {"poisson": Poisson(rate_per_s=first)},
        "every": {"every": first},
        "ramp": {"ramp": Ramp(from_per_s=first, to_per_s=last)},
    }.get(name, {})


def test_all_at_once() -> None:
    assert times(Arrivals(start_ns=5 * S, until_ns=60 * S, count=3)) == [5 * S] * 3


def test_at_even_intervals_from_the_start() -> None:
    assert times(Arrivals(every=2.0, start_ns=S, until_ns=8 * S)) == [1 * S, 3 * S, 5 * S, 7 * S]


def test_nothing_comes_from_the_end_on() -> None:
    assert times(Arrivals(every=1.0, until_ns=3 * S)) == [0, S, 2 * S]


def test_a_count_bounds_a_process() -> None:
    assert len(times(Arrivals(poisson=Poisson(rate_per_s=10.0), until_ns=3600 * S, count=17))) == 17


@pytest.mark.parametrize("process", ["poisson", "ramp"])
def test_as_many_come_as_the_rate_says(process: str) -> None:
    found = times(Arrivals(**process_of(process, 5.0, 15.0), start_ns=10 * S, until_ns=1010 * S))
    expected = 5.0 * 1000 if process == "poisson" else 10.0 * 1000
    assert abs(len(found) - expected) < 5 * math.sqrt(expected)
    assert found == sorted(found)
    assert 10 * S <= found[0] < found[-1] < 1010 * S


def test_a_ramp_grows_evenly() -> None:
    found = times(Arrivals(ramp=Ramp(from_per_s=1.0, to_per_s=9.0), until_ns=1000 * S))
    quarters = [sum(q * 250 * S <= when < (q + 1) * 250 * S for when in found) for q in range(4)]
    for count, expected in zip(quarters, [500, 1000, 1500, 2000], strict=True):
        assert abs(count - expected) < 5 * math.sqrt(expected)


def test_a_ramp_may_fall() -> None:
    found = times(Arrivals(ramp=Ramp(from_per_s=9.0, to_per_s=0.5), until_ns=1000 * S))
    assert sum(when < 500 * S for when in found) > 2 * sum(when >= 500 * S for when in found)


@given(
    st.sampled_from(["poisson", "every", "ramp", "once"]),
    st.floats(0.01, 50),
    st.floats(0.01, 50),
    st.integers(0, 20 * S),
    st.integers(0, 40 * S),
    st.none() | st.integers(0, 30),
    st.integers(0, 9),
)
def test_arrivals_are_in_order_and_within_their_bounds(
    process: str, first: float, last: float, start: int, until: int, count: int | None, seed: int
) -> None:
    arrivals = Arrivals(**process_of(process, first, last), start_ns=start, until_ns=until, count=count)
    found = list(itertools.islice(arrival_times(arrivals, random.Random(seed)), 3000))
    assert found == sorted(found)
    assert all(start <= when < until for when in found)
    assert count is None or len(found) <= count


def test_pods_are_numbered_labelled_and_carry_their_lives() -> None:
    scenario = load(f"workloads: [{{name: w, arrivals: {{count: 3}}, {TEMPLATE}, {LIFE}}}]")
    made = [pod for _, pod in pods(stream(scenario, "w"))]
    assert [pod.metadata.name for pod in made] == ["w-0", "w-1", "w-2"]
    assert all(dict(pod.metadata.labels) == {"app": "x", workloads.LABEL: "w"} for pod in made)
    assert all(pod.metadata.annotations[manifests.EXIT_CODE] == "3" for pod in made)
    run = [float(pod.metadata.annotations[manifests.RUN_SECONDS]) for pod in made]
    assert len(set(run)) == 3
    assert all(1 <= float(pod.metadata.annotations[manifests.SHUTDOWN_SECONDS]) <= 20 for pod in made)
    assert manifests.START_SECONDS not in made[0].metadata.annotations
    assert not any(
        manifests.annotation_complaint(name, pod.metadata.annotations[name])
        for pod in made
        for name in manifests.ANNOTATIONS
        if name in pod.metadata.annotations
    )


@pytest.mark.parametrize("seconds", [0, 7, 100, 4000])
def test_what_is_due_is_what_arrives(seconds: int) -> None:
    scenario = load(f"workloads: [{{name: w, arrivals: {{poisson: {{rate: 1/s}}}}, {TEMPLATE}, {LIFE}}}]")
    arriving = [when for when, _ in pods(stream(scenario, "w", 3))]
    due = workloads.due_before(scenario.workloads[0], 3, seconds * S)
    assert due == sum(when < seconds * S for when in arriving)


def test_the_seed_alone_decides() -> None:
    scenario = load(f"workloads: [{{name: w, arrivals: {{poisson: {{rate: 1/s}}}}, {TEMPLATE}, {LIFE}}}]")
    assert lives(stream(scenario, "w", 1)) == lives(stream(scenario, "w", 1))
    assert lives(stream(scenario, "w", 1)) != lives(stream(scenario, "w", 2))


def test_another_workload_changes_nothing() -> None:
    one = f"{{name: w, arrivals: {{poisson: {{rate: 1/s}}}}, {TEMPLATE}, {LIFE}}}"
    alone = load(f"workloads: [{one}]")
    both = load(f"workloads: [{one.replace('name: w', 'name: v')}, {one}]")
    assert lives(stream(alone, "w")) == lives(stream(both, "w"))
    assert lives(stream(both, "v")) != lives(stream(both, "w"))


def test_replacements_get_the_next_number_and_change_nothing_in_what_comes_later() -> None:
    scenario = load(f"workloads: [{{name: w, arrivals: {{count: 4}}, {TEMPLATE}, {LIFE}, replaceFinished: yes}}]")
    undisturbed = [life for _, life in lives(stream(scenario, "w"))]
    disturbed = stream(scenario, "w")
    first = disturbed.arrival()
    second = disturbed.arrival()
    number, again = disturbed.replacement(first[1], 0)
    third = disturbed.arrival()
    assert (number, again.metadata.name) == (2, "w-2")
    assert dict(again.metadata.annotations) not in undisturbed
    assert disturbed.replacement(again, 0)[1].metadata.name == "w-4"
    assert [dict(pod.metadata.annotations) for _, pod in (first, second, third)] == undisturbed[:3]


@pytest.mark.parametrize(("rule", "left"), [("whole", "70"), ("remaining", "29.5")])
def test_a_replacement_has_the_work_of_the_pod_that_was_lost(rule: str, left: str) -> None:
    life = "life: {runSeconds: {choice: [{value: 70}, {value: 7, weight: 1000}]}, shutdownSeconds: 3}"
    one = f"{{name: w, arrivals: {{count: 1}}, {TEMPLATE}, {life}, replaceFinished: {{work: {rule}}}}}"
    found = stream(load(f"workloads: [{one}]"), "w")
    _, lost = found.arrival()
    lost.metadata.annotations[manifests.RUN_SECONDS] = "70"
    _, again = found.replacement(lost, 40_500_000_000)
    assert (again.metadata.name, again.metadata.annotations[manifests.RUN_SECONDS]) == ("w-1", left)
    assert again.metadata.annotations[manifests.SHUTDOWN_SECONDS] == "3"
    # A pod that is lost again has what it was given to do.
    _, third = found.replacement(again, 20_000_000_000)
    assert third.metadata.annotations[manifests.RUN_SECONDS] == ("70" if rule == "whole" else "9.5")
    _, late = found.replacement(third, 90_000_000_000)
    assert late.metadata.annotations[manifests.RUN_SECONDS] == ("70" if rule == "whole" else "0")
    del lost.metadata.annotations[manifests.RUN_SECONDS]
    assert found.replacement(lost, 0)[1].metadata.annotations[manifests.RUN_SECONDS] == "7"


def test_a_pod_that_is_evicted_goes_on_with_what_was_left(tmp_path: Path) -> None:
    spec = f"""duration: 5m
events: [{{at: 20s, evict: {{pod: w-0}}}}]
workloads:
  - {{name: w, arrivals: {{count: 1}}, {TEMPLATE}, replaceFinished: {{work: remaining}},
     life: {{runSeconds: {{uniform: {{min: 60, max: 70}}}}, shutdownSeconds: 5}}}}"""
    history = runner.run(load(spec), runner.Options(out=tmp_path)).history
    first, again = history.pods.values()
    wanted_s = float(drawn(load(spec), "w")[0][manifests.RUN_SECONDS])
    ran_s = [
        (next(fact.time_ns for fact in pod.facts if fact.what == what) - (pod.running_ns or 0)) / S
        for pod, what in ((first, "terminating"), (again, "finished"))
    ]
    assert ran_s[0] == pytest.approx(20, abs=0.1)
    assert sum(ran_s) == pytest.approx(wanted_s, abs=0.1)


def drawn(scenario: Scenario, name: str) -> list[dict[str, str]]:
    return [life for _, life in lives(stream(scenario, name, scenario.seed))]
