"""Every recorded iteration of the real cluster autoscaler is kemu's, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.emulated.autoscaler import (
    actuators,
    cluster_states,
    estimators,
    expanders,
    pod_rules,
    scale_downs,
    scale_ups,
    taints,
)
from kemu.emulated.autoscaler.simulator import drainability, placements
from kemu.lab.conformance import agreements, case_files, registry

DATA = Path(__file__).parent / "data" / "cluster-autoscaling"
KIND = "cluster-autoscaling"


def cases(family: str = "*") -> list[case_files.Case]:
    return [case for path in sorted(DATA.glob(f"{family}.jsonl.gz")) for case in case_files.read(path)]


def test_every_case_agrees() -> None:
    report = agreements.judge(registry.kind(KIND), cases())
    assert report.total >= 280
    assert {one.id: one.differences for one in report.disagreements} == {}


@pytest.mark.parametrize(
    ("family", "owner", "name", "other"),
    [
        ("scaling", actuators, "CONFLICT_RETRY_S", 0.0),
        ("scale-up", expanders, "_extremes", lambda options, score: options[:1]),
        ("scale-up", expanders, "_pod_price", lambda wanted, per_milli, per_byte: 0.0),
        ("scale-up", estimators, "_score", lambda pod, node: 0.0),
        ("scale-up", scale_ups, "_limit", lambda group, similar, size, settings: 1000),
        ("scale-down", scale_downs.Planner, "_too_early", lambda self, one, now_ns: ""),
        ("scaling", scale_downs.Planner, "_limit", lambda self: 1),
        ("stated", scale_downs.Utilization, "__str__", lambda self: f"{self.used:g}"),
        ("stated", drainability.Rules, "_lost_owner", lambda self, pod: ""),
        ("stated", drainability.Budgets, "blocks", lambda self, pod: False),
        ("scale-down", pod_rules, "LONG_TERMINATING_S", 0),
        ("scaling", pod_rules, "has_blocking_local_storage", lambda pod: False),
        ("scaling", placements._Similar, "is_hopeless", lambda self, pod: True),
        ("scaling", taints, "is_expected_on_new_nodes", lambda key: True),
        ("scaling", cluster_states.ClusterState, "is_backed_off", lambda self, group, now_ns: False),
        ("scaling", cluster_states.ClusterState, "_handle_failures", lambda self, now_ns: None),
        ("scaling", cluster_states.ClusterState, "is_healthy", lambda self: True),
    ],
)
def test_a_mistake_in_a_rule_is_found(
    family: str, owner: object, name: str, other: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``family``: one that shows it, and soon."""
    monkeypatch.setattr(owner, name, other)
    kind = registry.kind(KIND)
    assert any(kind.judged(one.question, one.expect)[1] for one in cases(family))
