"""Scenarios with custom kinds: their definitions and objects among manifests and events, and what is expected."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

import kemu
from kemu import errors

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def widget(name: str, size: Any = None, **more: Any) -> dict[str, Any]:
    spec = {} if size is None else {"size": size}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec, **more}


def scenario(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kemu.dev/v1",
        "kind": "Scenario",
        "metadata": {"name": "custom"},
        "spec": {"nodes": [{"count": 1, "namePrefix": "n"}], "duration": "30s", **spec},
    }


def run(path: Path, **spec: Any) -> Any:
    file = path / "custom.yaml"
    file.write_text(yaml.safe_dump(scenario(**spec)))
    return kemu.run(file, seed=1)


def test_objects_may_stand_before_their_definition(tmp_path: Path) -> None:
    result = run(
        tmp_path,
        manifests=[widget("first", 3, status={"ready": True}), DEFINITION],
        events=[
            {"at": "3s", "create": widget("second")},
            {"at": "5s", "patch": {"kind": "Widget.example.com", "name": "second", "merge": {"spec": {"size": 7}}}},
            {"at": "6s", "apply": widget("first", 4)},
            {"at": "7s", "create": widget("third", "large")},
            {"at": "8s", "create": widget("fourth")},
            {"at": "9s", "delete": {"kind": "Widget.example.com", "name": "fourth"}},
        ],
        expect=[
            {"object": {"kind": "Widget.example.com", "name": "first"}, "field": "spec.size", "equals": 4},
            {"object": {"kind": "Widget.example.com", "name": "first"}, "field": "status.ready", "equals": True},
            {"object": {"kind": "Widget.example.com", "name": "second"}, "field": "spec.size", "equals": 7},
            {"object": {"kind": "Widget.example.com", "name": "third"}, "exists": False},
            {"object": {"kind": "Widget.example.com", "name": "fourth"}, "exists": False},
        ],
    )
    assert result.verdict == "holds", result.data


def test_one_seed_gives_one_run(tmp_path: Path) -> None:
    spec = {
        "manifests": [DEFINITION, widget("a")],
        "events": [{"at": "5s", "delete": {"kind": "CustomResourceDefinition", "name": "widgets.example.com"}}],
        "apiServers": {"replicas": 2},
    }
    assert len({run(tmp_path, **copy.deepcopy(spec)).digest for _ in range(2)}) == 1


def test_an_object_without_a_definition_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(
        errors.ScenarioError, match=r"Widget \(example.com/v1\) is a custom resource without a definition"
    ):
        run(tmp_path, manifests=[widget("a")])


def test_what_is_filled_in_when_it_is_read_is_no_mistake(tmp_path: Path) -> None:
    """Statuses are dropped on creation, and defaults of theirs stand in answers alone. Bytes of other kinds are held
    against the store."""
    definition = copy.deepcopy(DEFINITION)
    status = {"type": "object", "properties": {"phase": {"type": "string"}}, "default": {"phase": "New"}}
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = status
    result = run(
        tmp_path,
        controllers=["garbage-collector"],
        manifests=[definition],
        events=[{"at": "3s", "create": widget("a", 2)}],
        expect=[{"object": {"kind": "Widget.example.com", "name": "a"}, "field": "spec.size", "equals": 2}],
    )
    assert result.verdict == "holds"
    assert result.history.read_anew == {"widgets.example.com"}
    assert b"New" not in result.history.values["/registry/widgets.example.com/default/a"]
