"""Objects that a scenario names by file: folders, patterns, Lists, events, and kinds that it leaves out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli.main import main
from kemu.emulated.objects import resources
from kemu.errors import ScenarioError
from kemu.lab.scenario.loading import loader

HEAD = "apiVersion: kemu.dev/v1\nkind: Scenario\nmetadata: {name: it}\nspec:\n  duration: 30s\n  nodes: [{name: n}]\n"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  containers: [{name: main, image: x}]
"""
CLASS = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 9\n"
CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trains.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: trains, kind: Train}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
CUSTOM = "apiVersion: example.com/v1\nkind: Train\nmetadata: {name: t}\n"
AUTOSCALER = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec: {maxReplicas: 3}\n"


def pod(name: str) -> str:
    return POD.replace("NAME", name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "shop/10-pods.yaml": pod("a") + "---\n" + pod("b"),
        "shop/20-class.yml": CLASS,
        "shop/30-namespace.json": '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}}',
        "shop/notes.txt": "not: [yaml",
        "shop/deep/list.yaml": "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: c}\n"
        "  spec: {containers: [{name: main, image: x}]}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def load(folder: Path, spec: str, **options: Any) -> Any:
    (folder / "it.yaml").write_text(HEAD + spec)
    return loader.load(folder / "it.yaml", **options)


def names(scenario: Any) -> list[str]:
    return [f"{resources.of(one.message).kind} {one.message.metadata.name}" for one in scenario.setup]


def complaints(folder: Path, spec: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load(folder, spec)
    return [str(problem).removeprefix(f"{folder}{os.sep}") for problem in caught.value.problems]


def test_a_folder_stands_for_the_files_in_it(folder: Path) -> None:
    scenario = load(folder, "  manifests: [{file: shop}]\n")
    assert names(scenario) == ["Namespace web", "PriorityClass high", "Pod a", "Pod b"]
    assert [kind["kind"] for kind in scenario.resolved["spec"]["manifests"]] == [
        "Namespace", "PriorityClass", "Pod", "Pod",
    ]  # fmt: skip


def test_a_pattern_reaches_into_folders_and_typed_lists_know_their_kind(folder: Path) -> None:
    scenario = load(folder, '  manifests: [{file: "shop/**/*.yaml"}]\n')
    assert names(scenario) == ["Pod a", "Pod b", "Pod c"]


def test_the_resolved_scenario_needs_no_file(folder: Path) -> None:
    spec = "  manifests: [{file: shop}]\n  events: [{at: 1s, create: {file: shop/deep/list.yaml}}]\n"
    resolved = load(folder, spec).resolved
    for file in folder.rglob("*.*"):
        file.unlink()
    again = loader.of_data(resolved)
    assert names(again) == ["Namespace web", "PriorityClass high", "Pod a", "Pod b"]
    assert [one.metadata.name for one in again.events[0].objects] == ["c"]
    assert again.resolved == resolved


def test_mistakes_are_told_with_their_place_in_the_file(folder: Path) -> None:
    (folder / "shop/10-pods.yaml").write_text(pod("a") + "---\n" + pod("b").replace("image: x", "image: x, potrs: []"))
    for spec in ("  manifests: [{file: shop}]\n", "  events: [{at: 1s, apply: {file: shop/10-pods.yaml}}]\n"):
        (found,) = complaints(folder, spec)
        assert found.startswith("shop/10-pods.yaml:11:39: spec.containers[0].potrs: unknown field")


def test_names_that_lead_nowhere(folder: Path) -> None:
    (folder / "empty").mkdir()
    assert complaints(folder, "  manifests: [{file: empty}]\n") == [
        (
            "it.yaml:7:22: spec.manifests[0].file: empty is a folder without manifests "
            "(their names end in .yaml, .yml, .json)"
        )
    ]
    assert complaints(folder, "  manifests: [{file: 'x/*.yaml'}]\n") == [
        "it.yaml:7:22: spec.manifests[0].file: no file is named like x/*.yaml"
    ]
    assert "cannot be read" in complaints(folder, "  events: [{at: 1s, create: {file: none.yaml}}]\n")[0]


def test_kinds_that_cannot_matter_are_accepted(folder: Path) -> None:
    (folder / "rbac.yaml").write_text(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: s}\n---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'system:x'}\nrules: []\n---\n"
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n---\n"
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\nspec: {rules: [{host: a.example}]}\n"
    )
    assert len(load(folder, "  manifests: [{file: rbac.yaml}]\n").setup) == 4


def test_custom_objects_with_a_definition_are_simulated(folder: Path) -> None:
    (folder / "all.yaml").write_text("---\n".join([CUSTOM, CRD]))
    scenario = load(folder, "  unsimulated: ignore\n  manifests: [{file: all.yaml}]\n")
    assert sorted(names(scenario)) == ["CustomResourceDefinition trains.example.com", "Train t"]
    assert scenario.warnings == ()


def test_what_is_not_simulated_is_left_out_on_demand(folder: Path) -> None:
    (folder / "all.yaml").write_text("---\n".join([CUSTOM, AUTOSCALER, pod("a")]))
    refused = complaints(folder, "  manifests: [{file: all.yaml}]\n")
    assert [line.partition(": ")[0] for line in refused] == ["all.yaml:2:7", "all.yaml:6:7"]
    assert "unsimulated: ignore" in refused[0]
    scenario = load(folder, "  unsimulated: ignore\n  manifests: [{file: all.yaml}]\n")
    assert names(scenario) == ["Pod a"]
    assert [warning.message for warning in scenario.warnings] == [
        "Train t is left out: it is a custom resource without a definition",
        "HorizontalPodAutoscaler h is left out: its controller, horizontal-pod-autoscaler, does not run",
    ]
    some = complaints(folder, "  unsimulated: [Train]\n  manifests: [{file: all.yaml}]\n")
    assert [line.partition(": ")[0] for line in some] == ["all.yaml:6:7"]
    wrong = complaints(folder, "  unsimulated: [Pod]\n")
    assert wrong == ["it.yaml:7:17: spec.unsimulated[0]: Pod is simulated (leave the objects themselves out)"]


def test_an_event_creates_what_a_file_holds_and_goes_on_after_a_refusal(folder: Path, tmp_path: Path) -> None:
    (folder / "late.yaml").write_text(pod("w, namespace: web") + "---\n" + pod("late"))
    (folder / "it.yaml").write_text(
        HEAD + "  manifests: [{file: shop/30-namespace.json}]\n"
        "  events: [{at: 500ms, delete: {kind: Namespace, name: web}}, "
        "{at: 1s, create: {file: late.yaml}}, {at: 2s, apply: {kind: List, apiVersion: v1, items: "
        "[{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}]}}]\n"
        "  expect:\n"
        "    - {pod: late, bound: {node: n}}\n"
        "    - {pod: c, bound: {node: n}}\n"
        "    - {refused: {kind: Pod, name: web/w, reason: Forbidden}}\n"
        "    - {object: {kind: ConfigMap, name: x}, field: metadata.name, equals: x}\n"
    )
    command = ["run", str(folder / "it.yaml"), "--out", str(tmp_path / "out"), "--json"]
    assert main([*command, "--manifests", str(folder / "shop/deep")]) == 0
    assert main(["replay", str(tmp_path / "out")]) == 0


def test_removed_betas_are_read_where_the_cluster_serves_them(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text(
        "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n"
        "spec: {minAvailable: 1, selector: {}}\n"
    )
    file = tmp_path / "s.yaml"
    file.write_text(f"{HEAD}  manifests: [{{file: old.yaml}}]\n")
    with pytest.raises(ScenarioError, match="PodDisruptionBudget is not in 'policy/v1beta1'"):
        loader.load(file)
    file.write_text(f"{HEAD}  manifests: [{{file: old.yaml}}]\n  apiServers: {{removedBetas: true}}\n")
    (budget,) = (one.message for one in loader.load(file).setup if one.message.metadata.name == "a")
    assert [one.operator for one in budget.spec.selector.matchExpressions] == ["Exists"]
