"""Bad input of every kind: always a ScenarioError that says what and where; nothing else is raised, nothing hangs."""
# ruff: noqa: E501 - one mistake a line reads best

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.errors import Problem, ScenarioError
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from tests.scenario.texts import HEAD, NODES

TEMPLATE = "pods: {spec: {containers: [{name: m}]}}"


def mistakes(text: str) -> tuple[Problem, ...]:
    with pytest.raises(ScenarioError) as caught:
        loader.loads(text)
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("manifests: " + "[" * 500 + "]" * 500, "nested more than 100 levels"),
        ("manifests: " + "[" * 200_000 + "]" * 200_000, "nested more than 100 levels"),
        ("manifests: " + "{a: " * 2000 + "1" + "}" * 2000, "nested more than 100 levels"),
        ("manifests:\n  " + "- " * 2000 + "1", "nested more than 100 levels"),
        ("seed: " + "9" * 5000, "whole number"),
        ("seed: 0x" + "f" * 5000, "whole number"),
        ("seed: " + "9" * 30, "must be at most 9.22337e+18"),
        ("duration: " + "9" * 5000 + "s", "too long for a duration"),
        (f"workloads: [{{name: w, arrivals: {{poisson: {{rate: {'9' * 5000}/s}}}}, {TEMPLATE}}}]", "too long for a rate"),
        (f"workloads: [{{name: w, arrivals: {{count: 1000000000000}}, {TEMPLATE}}}]", "about 1e+12 pods"),
        (f"workloads: [{{name: w, arrivals: {{every: 1ns}}, {TEMPLATE}}}]", "about 6e+11 pods"),
        (f"workloads: [{{name: w, arrivals: {{poisson: {{rate: 1000000/s}}}}, {TEMPLATE}}}]", "about 6e+08 pods"),
        (f"workloads: [{{name: w, arrivals: {{ramp: {{from: 1/s, to: 1000000/s}}}}, {TEMPLATE}}}]", "about 3e+08 pods"),
        ("chaos: [{every: 1ns, crash: {actor: store}}]", "about 6e+11 times"),
        ("controllers: {node-lifecycle: {nodeMonitorPeriod: 1ns}}", "at least 1ms"),
        ("controllers: {cluster-autoscaler: {}}", "spec.controllers.cluster-autoscaler: there is no spec.autoscaler"),
        ("controllers: [job, cluster-autoscaler]", "spec.controllers[1]: there is no spec.autoscaler"),
        ("controllers: {job: {leaderElection: {retryPeriod: 12s}}}", "spec.controllers.job.leaderElection.renewDeadline"),
        ('"a\\e[31mb\\n": 1', "spec[a\\x1b[31mb\\n]"),
        ("expect: [{order: [5]}]", "spec.expect[0].order"),
        ("expect: [{pods: {names: [5]}, all: {bound: {}}}]", "spec.expect[0].pods.names[0]"),
    ],
)  # fmt: skip
def test_what_would_break_the_reader_is_refused(text: str, what: str) -> None:
    found = mistakes(f"{HEAD}{NODES}  {text}\n")
    assert what in str(found[0])
    assert all(problem.line > 3 for problem in found)


@pytest.mark.parametrize(
    ("node", "path", "what"),
    [
        ("{namePrefix: a-, count: 1000000000000}", "spec.nodes[0].count", "at most 200000 nodes"),
        (f"{{name: {'a' * 253}}}", "spec.nodes[0].name", "kubernetes.io/hostname"),
        (f"{{namePrefix: {'a' * 62}, count: 100}}", "spec.nodes[0].namePrefix", "has 65 characters"),
        ('{name: a, capacity: {"a[0": 1}}', "spec.nodes[0].capacity[a[0]", "name part must consist of"),
        ("{name: a, kubelet: {evictionHard: {memory.available: 1.5}}}", "spec.nodes[0].kubelet.evictionHard[memory.available]", "in quotes"),
        ("{name: a, kubelet: {nodeLeaseDurationSeconds: 99999999999}}", "spec.nodes[0].kubelet.nodeLeaseDurationSeconds", "at most"),
        ("{name: a, kubelet: {housekeepingInterval: 999ms}}", "spec.nodes[0].kubelet.housekeepingInterval", "at least 1s"),
        ("{name: a, kubelet: {kernelMemcgNotification: 1}}", "spec.nodes[0].kubelet.kernelMemcgNotification", "true or false"),
        ("{name: a, usage: {inactiveFile: 1Gi}}", "spec.nodes[0].usage", "inactive_file"),
        ("{name: a, kubelet: {nodeStatusUpdateFrequency: 1ns}}", "spec.nodes[0].kubelet.nodeStatusUpdateFrequency", "at least 1ms"),
    ],
)  # fmt: skip
def test_nodes_that_could_not_be(node: str, path: str, what: str) -> None:
    found = mistakes(f"{HEAD}  nodes: [{node}]\n")
    assert [(problem.path, what in problem.message) for problem in found] == [(path, True)]


@pytest.mark.parametrize(
    ("settings", "path", "what"),
    [
        ("evictionHard: {memory.avialable: 1Gi}", "evictionHard[memory.avialable]", "did you mean memory.available?"),
        ("evictionHard: {nodefs.available: 120%}", "evictionHard[nodefs.available]", "<= 100%"),
        ("evictionHard: {nodefs.available: 1Gii}", "evictionHard[nodefs.available]", "suffix"),
        ("evictionSoft: {memory.available: 1Gi}", "evictionSoft[memory.available]", "grace period must be specified"),
        ("evictionMinimumReclaim: {memory.available: -1Gi}", "evictionMinimumReclaim[memory.available]", "negative"),
        ("evictionSoftGracePeriod: {memory: 30s}", "evictionSoftGracePeriod.memory", "unsupported eviction signal"),
        ("shutdownGracePeriodByPodPriority: [{priority: 9999999999}]", "shutdownGracePeriodByPodPriority[0].priority", "at most"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("in_file", [False, True])
def test_settings_of_a_kubelet(settings: str, path: str, what: str, in_file: bool, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    file = tmp_path / "kubelet.yaml"
    file.write_text(f"# what the kubelet is told\n{settings}\n")
    node = "kubeletFile: kubelet.yaml" if in_file else f"kubelet: {{{settings}}}"
    scenario.write_text(f"{HEAD}  nodes: [{{name: a, {node}}}]\n")
    with pytest.raises(ScenarioError) as caught:
        loader.load(scenario)
    (found,) = caught.value.problems
    assert what in str(found)
    assert (found.file, found.path) == (str(file), path) if in_file else found.path == f"spec.nodes[0].kubelet.{path}"
    assert not in_file or found.line == 2


def test_extenders_that_are_no_list() -> None:
    (found,) = mistakes(f"{HEAD}{NODES}  schedulers: [{{name: a, config: {{extenders: 5}}}}]\n")
    assert found.path == "spec.schedulers[0].config.extenders"


def test_all_nodes_together_are_bounded() -> None:
    found = mistakes(f"{HEAD}  nodes: [{{namePrefix: a-, count: 5}}, {{namePrefix: b-, count: 199996}}]\n")
    assert [problem.path for problem in found] == ["spec.nodes[1].count"]
    assert "5 came before" in found[0].message


def test_a_message_quotes_no_more_than_can_be_read() -> None:
    (found,) = mistakes(f"{HEAD}  nodes: [{{name: {'A' * 100_000}}}]\n")
    assert len(str(found)) < 2000


# What every shipped scenario becomes when something in it is changed at random -------------------------------------

ODD: list[Any] = [
    None, True, -1, 2**63, 10**30, 0.5, float("nan"), float("inf"), "", "x", "[", "a[", "-5", "1Gii", "5m", "99999999h",
    "1ns", "110%", "é", "\0", "a" * 300, "kubelet/*", "default/x", [], {}, [None], [[]], [{}], {"": 1}, {"a": {"b": [1]}},
    {"uniform": {"min": 0, "max": 0}}, {"choice": []}, {"normal": {"mean": 1, "sd": -1}},
]  # fmt: skip


def spots(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every place that holds something: its mapping or list, and its key or index."""
    if isinstance(data, dict | list):
        for key in list(data) if isinstance(data, dict) else range(len(data)):
            yield data, key
            yield from spots(data[key])


def change(data: Any, draw: random.Random) -> None:
    holder, key = draw.choice([*spots(data)])
    match draw.randrange(5):
        case 0:
            del holder[key]
        case 1:
            holder[key] = [holder[key]]
        case 2 if isinstance(holder, dict):
            holder[draw.choice(["x", "", "é", "name", "kind", "spec"])] = holder.pop(key)
        case 3 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        case _:
            holder[key] = copy.deepcopy(draw.choice(ODD))


@pytest.mark.parametrize("name", [name for name in catalog.shipped() if not name.startswith(("traces/", "scale/"))])
def test_whatever_is_changed_in_a_scenario_it_loads_or_says_what_is_wrong(name: str, tmp_path: Path) -> None:
    data = yaml.load(catalog.find(name).read_text(), yaml.CSafeLoader)
    draw = random.Random(name)
    for number in range(6):
        changed = copy.deepcopy(data)
        change(changed, draw)
        file = tmp_path / f"{number}.yaml"
        file.write_text(yaml.dump(changed, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False))
        found: tuple[Problem, ...] = ()
        try:
            loader.load(file)
        except ScenarioError as error:
            found = error.problems
        assert all(problem.message and problem.line > 0 for problem in found)
