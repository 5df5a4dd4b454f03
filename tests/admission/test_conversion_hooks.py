"""Conversion hooks of scenarios: functions in Python that stand for conversion webhooks."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import kemu
from kemu.errors import ScenarioError, SimulationError
from kemu.lab.scenario import forms
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject
from tests.gateway.custom import conversions

NAME = conversions.DEFINITION["metadata"]["name"]


def scenario(function: str = "gizmos", **more: Any) -> dict[str, Any]:
    definition = copy.deepcopy(conversions.DEFINITION)
    definition["spec"]["conversion"]["webhook"]["clientConfig"] = {"url": "https://127.0.0.1:1/convert"}
    servers = {"conversionHooks": [{"name": NAME, "hook": f"tests.admission.house_hooks:{function}"}], **more}
    return {
        "duration": "20s",
        "nodes": [{"name": "node-1", "allocatable": {"cpu": "4", "memory": "8Gi"}}],
        "apiServers": servers,
        "manifests": [definition],
        "events": [
            {"at": "5s", "create": conversions.one("a", address="a:80", replicas=3)},
            {"at": "6s", "create": conversions.two("b", host="b", port=81)},
        ],
    }


def stored(run: kemu.Run) -> dict[str, dict[str, Any]]:
    """What the store has in the end, by name."""
    found: dict[str, dict[str, Any]] = {}
    for entry in run.events:
        if entry.kind == "store.txn":
            for _, key, value, *_ in entry.data["changes"]:
                if NAME in key and "customresourcedefinitions" not in key:
                    obj = CustomObject.FromString(value)
                    found[key.rpartition("/")[2]] = {"apiVersion": obj.apiVersion, **json.loads(obj.content)}
    return found


def asked(run: kemu.Run) -> list[tuple[str, str, str]]:
    return [
        (entry.data["name"], entry.data["wanted"].rpartition("/")[2], entry.data["message"])
        for entry in run.events
        if entry.kind == "api.conversion"
    ]


def test_a_hook_converts_what_is_stored_and_shown() -> None:
    first, second = kemu.run(scenario()), kemu.run(scenario())
    assert first.digest == second.digest
    group = conversions.GROUP
    assert stored(first) == {
        "a": {"apiVersion": f"{group}/v1", "spec": {"address": "a:80", "replicas": 3}},
        "b": {"apiVersion": f"{group}/v1", "spec": {"address": "b:81"}},
    }
    assert asked(first) == [("b", "v1", ""), ("b", "v2", "")]


def test_what_a_hook_may_not_change_is_refused() -> None:
    run = kemu.run(scenario("renames"))
    assert list(stored(run)) == ["a"]
    ((name, wanted, message),) = asked(run)
    assert (name, wanted) == ("b", "v1")
    assert message == (
        f"conversion webhook for {conversions.GROUP}/v2, Kind=Gizmo returned invalid object: "
        "must have the same name: b != other"
    )


def test_what_is_no_object_ends_the_run() -> None:
    with pytest.raises(SimulationError, match=f"conversion hook of {NAME} returned"):
        kemu.run(scenario("returns_a_set"))


def problems(spec: dict[str, Any]) -> str:
    with pytest.raises(ScenarioError) as caught:
        forms.load(spec)
    return str(caught.value)


def test_mistakes_are_told_when_the_scenario_is_loaded() -> None:
    text = problems(scenario(conversionHooks=[]))
    assert f"the webhook that converts {NAME} is a process outside" in text
    assert f"apiServers.conversionHooks: [{{name: {NAME}, hook: module:function}}]" in text
    assert forms.load(scenario(conversionHooks=[], webhooks="call"))
    assert "cannot be loaded" in problems(scenario("nothing"))
    assert "there is no definition gizmos.convert.example.com" in problems(
        {**scenario(), "manifests": [], "events": []}
    )
    hook = {"name": NAME, "hook": "tests.admission.house_hooks:gizmos"}
    assert "another hook has this name" in problems(scenario(conversionHooks=[hook, hook]))
