"""``scale``: the same cluster, many times as large."""

from __future__ import annotations

import random

import pytest

from kemu.lab.scenario import arrivals
from kemu.lab.scenario.loading import loader
from kemu.runtime import distributions
from kemu.runtime.env import SECOND_NS
from tests.scenario.texts import load, problems

NODES = "  nodes: [{namePrefix: n-, count: 2, allocatable: {cpu: '8', memory: 16Gi, pods: '99'}}]\n"
PODS = "pods: {spec: {containers: [{name: m, resources: {requests: {cpu: 500m}}}]}}"


def text(arrival: str, scale: int = 10) -> str:
    return f"scale: {scale}\nworkloads: [{{name: w, arrivals: {arrival}, {PODS}, life: {{runSeconds: 10}}}}]"


def times(arrival: str, scale: int) -> list[float]:
    process = load(text(arrival, scale), nodes=NODES).workloads[0].arrivals
    assert process is not None
    return [when_ns / SECOND_NS for when_ns in arrivals.arrival_times(process, random.Random(1))]


@pytest.mark.parametrize(
    ("arrival", "count"),
    [
        ("{poisson: {rate: 5/s}, until: 100s}", 5000),
        ("{poisson: {rate: 5/s}, count: 30}", 300),
        ("{poisson: {load: 0.5}, until: 100s}", 1600),
        ("{every: {exponential: {mean: 200ms}}, until: 100s}", 5000),
        ("{every: {choice: [{value: 100ms, weight: 3}, {value: 500ms}]}, until: 100s}", 5000),
        ("{ramp: {from: 1/s, to: 9/s}, until: 100s}", 5000),
    ],
)
def test_as_many_more_pods_arrive_in_the_same_time(arrival: str, count: int) -> None:
    many, few = times(arrival, 10), times(arrival, 1)
    assert len(many) == pytest.approx(count, rel=0.05)
    assert many[-1] == pytest.approx(few[-1], rel=0.3)


def test_intervals_and_counts_are_multiplied_exactly() -> None:
    assert times("{every: 2s, count: 3}", 4) == [0.5 * n for n in range(12)]
    assert times("{count: 3}", 4) == [0.0] * 12


def test_groups_of_nodes_grow() -> None:
    assert [node.name for node in load(text("{count: 1}", 3), nodes=NODES).nodes] == [f"n-{n}" for n in range(1, 7)]


def test_the_resolved_document_is_scaled_once() -> None:
    scenario = load(text("{count: 3}", 4), nodes=NODES)
    again = loader.of_data(scenario.resolved)
    assert len(again.nodes) == len(scenario.nodes) == 8


def test_what_has_no_size_to_multiply_is_refused() -> None:
    one = "  nodes: [{name: n, allocatable: {cpu: '8', memory: 16Gi, pods: '99'}}]\n"
    assert "is one node, which scale cannot multiply" in problems(text("{count: 1}", 2), nodes=one)[0].message
    assert load(text("{count: 1}", 1), nodes=one).nodes[0].name == "n"
    assert "spec.scale" in problems(text("{count: 1}", 0), nodes=one)[0].path


@pytest.mark.parametrize(
    "data",
    [
        1.5,
        {"uniform": {"min": 1, "max": 20}},
        {"exponential": {"mean": 60}},
        {"normal": {"mean": 10, "sd": 2, "min": 0}},
        {"lognormal": {"median": 1, "p99": 8}},
        {"choice": [{"value": 1, "weight": 9}, {"value": 60}]},
    ],
)
def test_every_quantile_of_a_scaled_distribution_is_multiplied(data: object) -> None:
    plain, scaled = distributions.parse(data), distributions.parse(distributions.scaled(data, 3))
    for share in (0.01, 0.3, 0.5, 0.97):
        assert scaled.quantile(share) == pytest.approx(3 * plain.quantile(share))
