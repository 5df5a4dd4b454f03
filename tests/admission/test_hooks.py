"""Admission hooks of scenarios, functions in Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import kemu
from kemu.errors import ScenarioError, SimulationError, UserCodeFailed
from kemu.lab.scenario import forms
from tests.admission import cases

RULES = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]
EXAMPLE = Path(__file__).parents[2] / "examples/admission/house-rules.yaml"


def scenario(*hooks: dict[str, Any], manifests: Any = (), **more: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
    pods = [{"at": f"{at}s", "create": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}}
            for at, name in ((1, "one"), (2, "longer"))]  # fmt: skip
    return {
        "duration": "10s",
        "nodes": [{"name": "node-1", "allocatable": {"cpu": "4", "memory": "8Gi"}}],
        "apiServers": {"admissionHooks": list(hooks), **more},
        "manifests": list(manifests),
        "events": pods,
    }


def hook(function: str, **more: Any) -> dict[str, Any]:
    return {
        "name": f"{function}.example.com".replace("_", "-"),
        "hook": f"tests.admission.house_hooks:{function}",
        **more,
    }


def problems(spec: dict[str, Any]) -> str:
    with pytest.raises(ScenarioError) as caught:
        forms.load(spec)
    return str(caught.value)


def test_a_hook_refuses_and_another_changes() -> None:
    spec = scenario(hook("small_only", rules=RULES), hook("label", rules=RULES, mutates=True))
    spec["expect"] = [
        {"pod": "one", "running": {"node": "node-1"}},
        {"refused": {"kind": "Pod", "name": "longer"}},
    ]
    first, second = kemu.run(spec), kemu.run(spec)
    assert first.verdict == "holds"
    assert first.digest == second.digest
    spec["expect"].append({"object": {"kind": "Pod", "name": "one"}, "field": "metadata.labels.drawn", "equals": "x"})
    (told,) = kemu.run(spec).failures
    assert re.search(r"[0-9]", told.detail)


def test_a_hook_stands_for_the_webhook_of_its_name() -> None:
    configured = cases.hooks("Validating", {**cases.hook("small-only"), "rules": RULES})
    configured = {**cases.filled(configured, {"url": "https://127.0.0.1:1", "ca": "", "ns": "hooks"})}
    spec = scenario(hook("small_only"), manifests=[configured])
    spec["expect"] = [{"refused": {"kind": "Pod", "name": "longer"}}, {"pod": "one", "running": {}}]
    assert kemu.run(spec).verdict == "holds"
    text = problems(scenario(manifests=[configured]))
    assert "webhook small-only.example.com is a process outside" in text
    assert "apiServers.admissionHooks: [{name: small-only.example.com" in text
    assert forms.load(scenario(manifests=[configured], webhooks="call"))


def test_mistakes_are_told_when_the_scenario_is_loaded() -> None:
    assert "no webhook small-only.example.com" in problems(scenario(hook("small_only")))
    assert "cannot be loaded" in problems(scenario(hook("nothing", rules=RULES)))
    wrong = [{"operations": ["CREATE", "*"], "apiGroups": [""], "apiVersions": [], "resources": ["pods"]}]
    assert "apiVersions: Required value" in problems(scenario(hook("label", rules=wrong)))
    condition = [{"name": "x", "expression": "object.metadata.name +"}]
    assert "compilation failed" in problems(scenario(hook("label", rules=RULES, matchConditions=condition)))
    assert "another hook has this name" in problems(scenario(hook("label", rules=RULES), hook("label", rules=RULES)))
    assert "must be NAMESPACE/NAME" in problems(scenario(services={"hook": 1}))


def test_what_a_hook_does_wrong_ends_the_run() -> None:
    with pytest.raises(UserCodeFailed, match="a mistake") as caught:
        kemu.run(scenario(hook("breaks", rules=RULES)))
    assert caught.value.file.endswith("house_hooks.py")
    for function, text in (("returns", "returned 'no'"), ("unfit", "which is no JSON")):
        with pytest.raises(SimulationError, match=text):
            kemu.run(scenario(hook(function, rules=RULES, mutates=True)))
    with pytest.raises(SimulationError, match="that takes mutates: true"):
        kemu.run(scenario(hook("label", rules=RULES)))


def test_policies_act_in_scenarios() -> None:
    policy = cases.policy("Validating", cases.validations("object.metadata.name.size() < 4"))
    policy["spec"]["matchConstraints"]["resourceRules"] = RULES
    made = [policy, cases.bound("Validating", "", {"validationActions": ["Deny"]})]
    spec = scenario(manifests=[cases.filled(one, {"ns": "short"}) for one in made])
    spec["expect"] = [
        {"refused": {"kind": "Pod", "name": "longer", "reason": "Invalid"}},
        {"pod": "one", "running": {}},
    ]
    assert kemu.run(spec).verdict == "holds"


def test_the_example_holds() -> None:
    assert kemu.run(str(EXAMPLE)).verdict == "holds"
