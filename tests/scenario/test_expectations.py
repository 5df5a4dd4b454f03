"""Expectations become data that says exactly what was written."""

from __future__ import annotations

import pytest

from kemu.lab.scenario.expectations import (
    Bounds,
    CheckIs,
    CounterIs,
    InOrder,
    NodeIs,
    PodIs,
    PodsAre,
    Selection,
    Statement,
    Subject,
)
from kemu.runtime.env import SECOND_NS
from tests.scenario.texts import load, pod

S = SECOND_NS

BASE = f"""\
schedulers: [{{name: default-scheduler, replicas: 2}}]
manifests: [{{apiVersion: v1, kind: Namespace, metadata: {{name: x}}}}]
events: [{{at: 1s, create: {pod("c")}}}, {{at: 1s, create: {pod("d").replace("name: d", "name: d, namespace: x")}}}]
workloads: [{{name: w, arrivals: {{count: 3}}, pods: {{spec: {{containers: [{{name: m}}]}}}}}}]
"""


def read(text: str) -> Subject:
    (found,) = load(f"{BASE}expect: [{text}]").expectations
    return found.subject


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("{pod: c, bound: {}}", PodIs("default/c", Statement("bound"))),
        ("{pod: default/c, bound: {}}", PodIs("default/c", Statement("bound"))),
        (
            "{pod: x/d, bound: {node: node-1, by: default-scheduler/1, after: 1s, before: 2s}}",
            PodIs("x/d", Statement("bound", node="node-1", by="default-scheduler/1", after_ns=S, before_ns=2 * S)),
        ),
        ("{pod: w-2, preempted: {by: c}}", PodIs("default/w-2", Statement("preempted", by="default/c"))),
        ("{pod: c, neverBound: true}", PodIs("default/c", Statement("bound", never=True))),
        (
            "{pod: c, never: {nominated: {before: 5s}}}",
            PodIs("default/c", Statement("nominated", never=True, before_ns=5 * S)),
        ),
        ("{pod: c, phase: Pending}", PodIs("default/c", Statement("phase", phase="Pending"))),
        ("{pod: c, waited: {atMost: 30s}}", PodIs("default/c", Statement("waited", at_most_ns=30 * S))),
        ("{pod: c, rejected: {reason: OutOfcpu}}", PodIs("default/c", Statement("rejected", reason="OutOfcpu"))),
        ("{pod: c, finished: {phase: Failed}}", PodIs("default/c", Statement("finished", phase="Failed"))),
        (
            "{pod: c, evicted: {reason: Evicted, node: node-1}}",
            PodIs("default/c", Statement("evicted", node="node-1", reason="Evicted")),
        ),
        ("{pod: c, never: {oomKilled: {}}}", PodIs("default/c", Statement("oomKilled", never=True))),
        (
            "{node: node-1, condition: {type: MemoryPressure, status: true, before: 1s}}",
            NodeIs("node-1", Statement("condition", reason="MemoryPressure", status="True", before_ns=S)),
        ),
        (
            "{node: node-1, never: {tainted: {key: a/b, effect: NoExecute}}}",
            NodeIs("node-1", Statement("tainted", never=True, reason="a/b", status="NoExecute")),
        ),
        ("{node: node-1, removed: {}}", NodeIs("node-1", Statement("removed"))),
        (
            "{pods: {workload: w}, all: {running: {}}}",
            PodsAre(Selection(workload="w"), "all", Statement("running"), Bounds()),
        ),
        (
            "{pods: {selector: {matchLabels: {a: b}}}, none: {rejected: {}}}",
            PodsAre(Selection(selector={"matchLabels": {"a": "b"}}), "none", Statement("rejected"), Bounds()),
        ),
        (
            "{pods: {selector: {a: b}}, any: {bound: {}}}",
            PodsAre(Selection(selector={"matchLabels": {"a": "b"}}), "any", Statement("bound"), Bounds()),
        ),
        (
            "{pods: {names: [c, x/d]}, count: {is: {never: {bound: {}}}, atLeast: 1, atMost: 2}}",
            PodsAre(
                Selection(names=("default/c", "x/d")),
                "count",
                Statement("bound", never=True),
                Bounds(at_least=1, at_most=2),
            ),
        ),
        ("{counter: preemptions, equals: 2}", CounterIs("preemptions", Bounds(equals=2))),
        ("{check: no-node-overcommitted}", CheckIs("no-node-overcommitted", True)),
        ("{check: no-node-overcommitted, holds: no}", CheckIs("no-node-overcommitted", False)),
        (
            "{order: [{pod: c, bound: {}}, {pod: w-0, deleted: {}}]}",
            InOrder((PodIs("default/c", Statement("bound")), PodIs("default/w-0", Statement("deleted")))),
        ),
    ],
)  # fmt: skip
def test_an_expectation_is_what_it_says(text: str, subject: Subject) -> None:
    assert read(text) == subject


def test_every_expectation_has_a_name_of_its_own_and_its_text() -> None:
    scenario = load(
        BASE
        + "expect:\n"
        + "- {pod: c, bound: {node: node-1, before: 5s}}\n"
        + "- {pod: c, bound: {}}\n"
        + "- {pod: x/d, never: {bound: {}}}\n"
        + "- {id: mine, counter: preemptions, equals: 2}\n"
        + "- {pods: {workload: w}, count: {is: {bound: {}}, equals: 3}}\n"
    )
    assert [found.id for found in scenario.expectations] == [
        "c.bound", "c.bound#2", "x/d.never.bound", "mine", "w.count.bound",
    ]  # fmt: skip
    assert scenario.expectations[0].text == "{pod: c, bound: {node: node-1, before: 5s}}"
    assert [found.line for found in scenario.expectations] == list(range(10, 15))


def test_the_end_may_be_an_expectation() -> None:
    until = load(BASE + "until: {pods: {workload: w}, count: {is: {running: {}}, atLeast: 3}}").until
    assert until is not None
    assert isinstance(until.subject, PodsAre)


@pytest.mark.parametrize(
    ("bounds", "value", "allowed"),
    [
        (Bounds(equals=2), 2, True),
        (Bounds(equals=2), 3, False),
        (Bounds(at_least=2), 2, True),
        (Bounds(at_least=2), 1, False),
        (Bounds(at_least=2, at_most=4), 5, False),
        (Bounds(), 5, True),
    ],
)
def test_bounds(bounds: Bounds, value: float, allowed: bool) -> None:
    assert bounds.allow(value) is allowed
