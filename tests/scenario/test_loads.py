"""Loads: the rate at which a workload keeps a share of the nodes requested."""

from __future__ import annotations

import functools
import math
import random
import statistics
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.doors.cli import main
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.loading.objects import manifests
from kemu.lab.scenario.playing import runner, workloads
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime import distributions
from kemu.runtime.random_streams import random_stream
from tests.scenario.texts import HEAD, load, problems

NODES = (
    "  nodes: [{namePrefix: n-, count: 4, allocatable: {cpu: '8', memory: 16Gi, pods: '99', example.com/fpga: '2'}}]\n"
)
FPGA = ", limits: {example.com/fpga: '1'}"
PODS = f"pods: {{spec: {{containers: [{{name: m, resources: {{requests: {{cpu: 500m, memory: 1Gi}}{FPGA}}}}}]}}}}"


def workload(poisson: str, life: str = "life: {runSeconds: 10}", pods: str = PODS) -> str:
    return f"workloads: [{{name: w, arrivals: {{poisson: {{{poisson}}}}}, {pods}{', ' if life else ''}{life}}}]"


LIVES = ("20", "{uniform: {min: 4, max: 20}}", "{exponential: {mean: 3}}", "{normal: {mean: 2, sd: 4}}")
HUGE = "{lognormal: {median: 1, p99: 1.0e+100}}"


def with_spec(more: str) -> str:
    return PODS.replace("{spec: {", f"{{spec: {{{more}, ")


def rate(scenario: Scenario) -> float:
    arrivals = scenario.workloads[0].arrivals
    assert arrivals is not None
    assert arrivals.poisson is not None
    return arrivals.poisson.rate_per_s


@pytest.mark.parametrize(
    ("of", "capacity", "each"),
    [("", 32.0, 0.5), (", of: cpu", 32.0, 0.5), (", of: memory", 64.0, 1.0), (", of: example.com/fpga", 8.0, 1.0)],
)
def test_the_rate_is_what_keeps_that_share_requested(of: str, capacity: float, each: float) -> None:
    assert rate(load(workload(f"load: 0.9{of}"), nodes=NODES)) == pytest.approx(0.9 * capacity / (each * 10))


def test_init_containers_overhead_and_limits_count_as_they_do_in_kubernetes() -> None:
    pods = """pods: {spec: {initContainers: [{name: i, resources: {requests: {cpu: "3"}}}],
      containers: [{name: a, resources: {limits: {cpu: "1"}}}, {name: b, resources: {requests: {cpu: 500m}}}]}}"""
    assert rate(load(workload("load: 1", pods=pods), nodes=NODES)) == pytest.approx(32 / (3 * 10))


def test_a_template_may_say_how_long_its_pods_run() -> None:
    pods = PODS.replace("pods: {", "pods: {metadata: {annotations: {kemu.dev/run-seconds: '20'}}, ")
    assert rate(load(workload("load: 1", "", pods), nodes=NODES)) == pytest.approx(32 / (0.5 * 20))


@pytest.mark.parametrize(
    ("data", "mean"),
    [
        (7, 7.0),
        ({"uniform": {"min": 2, "max": 20}}, 11.0),
        ({"exponential": {"mean": 60}}, 60.0),
        ({"normal": {"mean": 10, "sd": 2}}, None),
        ({"normal": {"mean": 5, "sd": 5, "min": 4}}, None),
        ({"normal": {"mean": 5, "sd": 0}}, 5.0),
        ({"lognormal": {"median": 1, "p99": 8}}, None),
        ({"choice": [{"value": 1, "weight": 9}, {"value": 61}]}, 7.0),
    ],
)
def test_averages_are_exact(data: Any, mean: float | None) -> None:
    distribution = distributions.parse(data)
    if mean is not None:
        assert distribution.average == pytest.approx(mean, rel=1e-12)
    stream = random.Random(3)
    drawn = [distribution.draw(stream) for _ in range(60_000)]
    assert statistics.fmean(drawn) == pytest.approx(distribution.average, rel=0.03)


def test_a_normal_distribution_is_averaged_as_it_is_cut_off() -> None:
    # The mean of the half-normal distribution is sd * sqrt(2 / pi) above its beginning.
    assert distributions.parse({"normal": {"mean": 3, "sd": 2, "min": 3}}).average == pytest.approx(
        3 + 2 * 0.7978845608
    )


@pytest.mark.parametrize(
    ("spec", "path", "what"),
    [
        (workload("load: 0"), "load", "more than 0"),
        (workload("load: 0.5, rate: 1/s"), "rate", "second rate beside load"),
        (workload("rate: 1/s, of: cpu"), "of", "cannot stand beside rate"),
        (workload("of: cpu"), "of", "stands without its rate"),
        (workload("load: 1, of: nvidia.com/gpu"), "of", "request no nvidia.com/gpu"),
        (workload("load: 1, of: memry"), "of", "did you mean memory?"),
        (workload("load: 1", ""), "load", "run for ever, so no rate makes this load (state life.runSeconds)"),
    ],
)
def test_a_load_that_no_rate_makes_is_refused(spec: str, path: str, what: str) -> None:
    (found,) = problems(spec, nodes=NODES)
    assert found.path == "spec.workloads[0].arrivals.poisson" + (f".{path}" if path else "")
    assert what in f"{found.message} ({found.suggestion})"


@pytest.mark.parametrize(
    ("spec", "path", "what"),
    [
        (workload("load: 1", "life: {runSeconds: 0}"), "life.runSeconds", "mean of 0"),
        (workload("load: 1", f"life: {{runSeconds: {HUGE}}}"), "life.runSeconds", "finite"),
        (workload("load: 1", pods=with_spec("restartPolicy: Always")), "pods.spec.restartPolicy", "anew"),
        (workload("load: 1", pods=with_spec("activeDeadlineSeconds: 5")), "pods.spec.activeDeadlineSeconds", "mean"),
        (workload("load: 1", "life: {runSeconds: 1.0e-9}"), "arrivals", "would bring about"),
    ],
)  # fmt: skip
def test_run_times_without_a_mean_are_refused(spec: str, path: str, what: str) -> None:
    (found,) = problems(spec, nodes=NODES)
    assert found.path == f"spec.workloads[0].{path}"
    assert what in found.message


def test_nodes_that_have_none_of_it_are_named() -> None:
    nodes = "  nodes: [{name: a, allocatable: {cpu: '1', memory: 1Gi, pods: '9'}}]\n"
    (found,) = problems(workload("load: 1, of: example.com/fpga"), nodes=nodes)
    assert (found.path, found.message) == (
        "spec.workloads[0].arrivals.poisson.of",
        "the nodes have no example.com/fpga that pods can be given when the run starts",
    )


def test_a_mistake_in_the_nodes_is_told_once() -> None:
    assert [one.path for one in problems(workload("load: 1"), nodes="  nodes: [{name: A}]\n")] == ["spec.nodes[0].name"]


def test_every_variant_has_the_rate_of_its_own_nodes_and_load() -> None:
    spec = workload("load: 1") + (
        "\nmatrix: {'nodes[0].count': [4, 40], 'workloads[0].arrivals.poisson.load': [0.5, 1]}"
    )
    rates = [rate(variant) for _, variant in loader.variants(load(spec, nodes=NODES))]
    assert rates == pytest.approx([3.2, 6.4, 32, 64])


def test_it_can_be_overridden() -> None:
    assert rate(load(workload("load: 1"), {"workloads[0].arrivals.poisson.load": 0.5}, nodes=NODES)) == pytest.approx(
        3.2
    )


@pytest.mark.thorough
@given(
    share=st.floats(0.05, 1.2),
    of=st.sampled_from(["cpu", "memory"]),
    life=st.sampled_from(
        ["20", "{uniform: {min: 4, max: 20}}", "{exponential: {mean: 3}}", "{normal: {mean: 2, sd: 4}}"]
    ),
    seed=st.integers(0, 99),
)
@settings(max_examples=10, deadline=None)
def test_what_arrives_in_a_long_time_needs_that_share_of_it(share: float, of: str, life: str, seed: int) -> None:
    spec = workload(f"load: {share}, of: {of}", f"life: {{runSeconds: {life}}}")
    spec += f"\nseed: {seed}\nduration: 3h"
    scenario = load(spec, nodes=NODES)
    stream = workloads.Stream(workloads.plain(scenario.workloads[0]), seed, functools.partial(random_stream, seed))
    needed = arrived = 0.0
    while stream.next_ns() is not None:
        needed += float(stream.arrival()[1].metadata.annotations[manifests.RUN_SECONDS])
        arrived += 1
    each = {"cpu": 0.5 / 32, "memory": 1 / 64}[of]
    # Five standard errors of the sum of so many exponential run times.
    assert needed * each / (3 * 3600) == pytest.approx(share, rel=5 * 1.42 / math.sqrt(arrived))


def test_the_load_is_what_is_measured(tmp_path: Path) -> None:
    spec = workload("load: 0.6", "life: {runSeconds: 120}").replace(FPGA, "").replace("500m", '"4"')
    result = runner.run(load(f"{spec}\nduration: 2h", nodes=NODES), runner.Options(out=tmp_path))
    arrived = result.verdict["counts"]["pods_created"]
    assert arrived > 250
    assert result.verdict["costs"]["utilisation.cpu"] == pytest.approx(0.6, rel=3 / math.sqrt(arrived) + 120 / 7200)


def test_validation_tells_the_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.yaml"
    spec = workload("load: 1") + "\nmatrix: {'workloads[0].arrivals.poisson.load': [0.5, 1]}"
    file.write_text(HEAD + NODES + textwrap.indent(spec, "  "))
    assert main.main(["scenarios", "validate", str(file)]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  workload w: a load of 0.5 of cpu is 3.2/s",
        "  workload w: a load of 1 of cpu is 6.4/s",
    ]
