"""The descheduler in scenarios: its rounds, what a budget refuses, what is wrong with a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu import errors
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner

DUPLICATES = {
    "profiles": [
        {
            "name": "default",
            "pluginConfig": [{"name": "RemoveDuplicates"}],
            "plugins": {"balance": {"enabled": ["RemoveDuplicates"]}},
        }
    ]
}


def scenario(tmp_path: Path, descheduler: dict[str, Any], **spec: Any) -> Path:
    """Four pods on two nodes, to which a third one comes after ten seconds."""
    size = {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}
    replicas = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 6,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "web", "resources": {"requests": {"cpu": "1"}}}]},
            },
        },
    }
    document = {
        "apiVersion": "kemu.dev/v1",
        "kind": "Scenario",
        "metadata": {"name": "t"},
        "spec": {
            "duration": "5m",
            "nodes": [{"namePrefix": "node-", "count": 2, **size}],
            "descheduler": descheduler,
            "manifests": [replicas, *spec.pop("manifests", [])],
            "events": [{"at": "10s", "addNode": {"name": "late", **size}}],
            **spec,
        },
    }
    path = tmp_path / "t.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def counters(path: Path, tmp_path: Path) -> dict[str, int]:
    verdict = runner.run_all(loader.load(path), runner.Options(out=tmp_path / "run", runtime="sim"))[0]
    return verdict["counts"]


def test_every_interval_a_round(tmp_path: Path) -> None:
    found = counters(scenario(tmp_path, {"interval": "2m", "policy": DUPLICATES}), tmp_path)
    assert found["descheduled"] == 2
    assert found["pods_created"] == 8


def test_a_single_round_where_the_interval_is_zero(tmp_path: Path) -> None:
    found = counters(scenario(tmp_path, {"interval": "0s", "policy": DUPLICATES}), tmp_path)
    assert found["descheduled"] == 0


def test_a_limit_counts_anew_in_each_round(tmp_path: Path) -> None:
    policy = {**DUPLICATES, "maxNoOfPodsToEvictTotal": 1}
    found = counters(scenario(tmp_path, {"interval": "1m", "policy": policy}), tmp_path)
    assert found["descheduled"] == 2


def test_budgets_are_asked(tmp_path: Path) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    }
    found = counters(scenario(tmp_path, {"interval": "2m", "policy": DUPLICATES}, manifests=[budget]), tmp_path)
    assert found["descheduled"] == 0
    assert found["requests_refused"] >= 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pluginConfig": []}, "RemoveDuplicates has no pluginConfig"),
        ({"plugins": {"deschedule": {"enabled": ["RemoveDuplicates"]}}}, "not .RemoveDuplicates"),
        (
            {
                "pluginConfig": [
                    {"name": "RemoveDuplicates", "args": {"namespaces": {"include": ["a"], "exclude": ["b"]}}}
                ]
            },
            "only one of include and exclude can be set",
        ),
        (
            {
                "pluginConfig": [
                    {"name": "RemoveDuplicates"},
                    {
                        "name": "LowNodeUtilization",
                        "args": {"thresholds": {"cpu": 50}, "targetThresholds": {"cpu": 20}},
                    },
                ]
            },
            "is greater than its targetThresholds",
        ),
        ({"pluginConfig": [{"name": "RemoveDuplicates", "args": {"nameSpaces": {}}}]}, "nameSpaces"),
    ],
)
def test_what_is_wrong_with_a_policy(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    policy = {"profiles": [{**DUPLICATES["profiles"][0], **change}]}
    with pytest.raises(errors.KemuError, match=message):
        loader.load(scenario(tmp_path, {"policy": policy}))


def test_a_controller_without_a_policy(tmp_path: Path) -> None:
    path = scenario(tmp_path, {"policy": DUPLICATES}, controllers=["descheduler", "replicaset"])
    document = yaml.safe_load(path.read_text())
    del document["spec"]["descheduler"]
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(errors.KemuError, match=r"there is no spec.descheduler, which says what its policy is"):
        loader.load(path)
