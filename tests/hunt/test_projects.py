"""The file of a hunt, and plans: what they say, and what is told where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.errors import KemuError, ScenarioError
from kemu.lab.hunt import perturbations, projects, searches
from kemu.lab.hunt.perturbations import Kind, Perturbation, Point

HEAD = "apiVersion: kemu.dev/v1\nkind: Hunt\nmetadata: {name: h}\nspec:\n"
ONE = "  controllers: [{name: c, command: [run, '{kubeconfig}']}]\n"
AT = Point("Widget", "w", "default", 1)
WIDGET = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}"


def load(folder: Path, text: str) -> projects.Project:
    file = folder / "h.yaml"
    file.write_text(HEAD + text)
    return projects.load(file)


def test_steps(tmp_path: Path) -> None:
    (tmp_path / "cr.yaml").write_text(f"{WIDGET}\n---\n{WIDGET.replace('name: w', 'name: v')}\n")
    steps = f"""  steps:
    - {{apply: cr.yaml}}
    - {{apply: [{WIDGET}]}}
    - {{until: {{object: {{kind: Widget, name: w}}, field: status.ready, equals: true}}, within: 1m}}
    - {{until: "pod/a running"}}
    - {{until: {{object: {{kind: Pod, name: a, namespace: x}}, exists: false}}}}
    - {{patch: {{kind: Widget, name: w}}, with: {{spec: {{size: 1}}}}}}
    - {{scale: {{kind: StatefulSet, name: s}}, replicas: 3}}
    - {{delete: {{kind: Widget, name: w}}}}
    - {{wait: 2m}}
"""
    found = load(tmp_path, ONE + steps).steps
    assert [str(step) for step in found] == [
        "apply Widget w, Widget v",
        "apply Widget w",
        "until Widget w .status.ready=true",
        "until pod/a running",
        "until Pod x/a gone",
        "patch Widget w",
        "scale StatefulSet s to 3",
        "delete Widget w",
        "wait 120 s",
    ]
    assert found[2].seconds == 60
    assert found[6].replicas == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("  steps: [{wait: 1s}]\n", "controllers is missing"),
        (ONE + "  steps: [{wait: soon}]\n", "soon"),
        (ONE + "  steps: [{wait: 1s}]\n  lasts: {crashAfterWrite: 6m}\n", "crashAfterWrite: is not a key"),
        (ONE + "  steps: [{}]\n", "has no deed: one of apply, delete, patch, scale, until or wait"),
        (ONE + "  steps: [{patch: {kind: Pod, name: a}}]\n", "with is missing"),
        (ONE + "  steps: [{scale: {kind: Pod, name: a}, with: {}}]\n", "cannot stand beside scale"),
        (ONE + "  steps: [{apply: nothing.yaml}]\n", "nothing.yaml"),
        (ONE + "  steps: [{apply: {kind: Pod}}]\n", "an object has to have apiVersion, kind and metadata.name"),
        (ONE + "  steps: [{until: {object: {kind: Pod, name: a}, field: x}}]\n", "field and equals, or exists"),
        (ONE + "  cluster: {manifests: [crds/]}\n  steps: [{wait: 1s}]\n", "there is no crds/ beside this file"),
        (ONE.replace("[run,", "[bin/run,") + "  steps: [{wait: 1s}]\n", "h.yaml:5:37: spec.controllers[0].command[0]"),
        (ONE.replace("[run,", "[bin/run,") + "  steps: [{wait: 1s}]\n", "there is no bin/run beside this file"),
        (ONE.replace("[run,", "['{operators}/x/operator',") + "  steps: [{wait: 1s}]\n", "scripts/operators builds"),
        (
            ONE.replace("[run, '{kubeconfig}']", "[run], ready: {log: '('}") + "  steps: [{wait: 1s}]\n",
            "is no regular expression",
        ),
        (ONE.replace("]\n", ", {name: c, command: [x]}]\n") + "  steps: [{wait: 1s}]\n", "there are two controllers c"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, text)
    assert told in str(caught.value)


def test_how_long_perturbations_last(tmp_path: Path) -> None:
    """As the file says, by kind; what it does not name, and what does not last, stays as it is."""
    project = load(tmp_path, ONE + "  steps: [{wait: 1s}]\n  lasts: {lag: 6m}\n")
    assert set(projects.LASTING) == {kind for kind in perturbations.KINDS if Perturbation(kind, "c", AT).lasts_s}
    with searches.Hunt(project, tmp_path) as hunt:
        lag, crash = Perturbation(Kind.LAG, "c", AT), Perturbation(Kind.CRASH, "c", AT)
        assert [[one.lasts_s for one in hunt.lasting((plan,))] for plan in (lag, crash)] == [[360.0], [0.0]]


def test_a_plan_is_read_as_it_was_written() -> None:
    plan = Perturbation(Kind.FREEZE, "c", Point("Widget", "w", "x", 2), Point("Pod", "a", "default", 1), 7)
    assert perturbations.read(plan.data(), {"c": None}, "plan") == plan
    assert str(plan) == (
        "c starts again at the 1st change of Pod a, and sees Widget for 7 s"
        " as it was after the 2nd change of Widget x/w"
    )


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([], "has to be a mapping"),
        ({"kind": "melt"}, "kind 'melt' is none of crashAfterWrite"),
        ({"kind": "hide", "controller": "d"}, "there is no controller 'd'; there are c"),
        ({"kind": "hide"}, "object has to be"),
        ({"kind": "hide", "object": {"kind": "Pod", "name": "a"}, "nth": 0}, "nth has to be a number from 1 on, not 0"),
        ({"kind": "freeze", "object": {"kind": "Pod", "name": "a"}}, "freeze needs restart"),
        ({"kind": "hide", "object": {"kind": "Pod", "name": "a"}, "restart": {}}, "restart is only for freeze"),
        ({"kind": "hide", "object": {"kind": "Pod", "name": "a"}, "until": "x"}, "until has to be {after: 20s}"),
        ({"kind": "hide", "what": 1}, "no key what"),
    ],
)
def test_plans_that_are_none(data: object, told: str) -> None:
    with pytest.raises(KemuError, match=r"^plan: ") as caught:
        perturbations.read(data, {"c": None}, "plan")
    assert told in str(caught.value)


def test_what_is_judged(tmp_path: Path) -> None:
    text = ONE + "  steps: [{wait: 1s}]\n"
    found = load(tmp_path, text)
    assert (found.properties, found.ignored, found.rest_s, found.stable_s) == ((), (), 120, 20)
    said = "  ignore: [{path: data.a}, {path: data, kind: Secret}]\n  properties: [{check: x}]\n  stable: 5s\n"
    found = load(tmp_path, text + said)
    assert found.ignored == (projects.Ignored("data.a"), projects.Ignored("data", "Secret"))
    assert (found.properties, found.stable_s) == (({"check": "x"},), 5)
    assert load(tmp_path, text + "  rest: 3s\n").stable_s == 3, "no longer than the rest"


def test_operators_are_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEMU_OPERATORS", str(tmp_path / "built"))
    text = "  cluster: {removedBetas: true, manifests: ['{operators}/z/crds']}\n" + ONE + "  steps: [{wait: 1s}]\n"
    with pytest.raises(ScenarioError, match=r"there is no .*built/z/crds"):
        load(tmp_path, text)
    (tmp_path / "built/z/crds").mkdir(parents=True)
    found = load(tmp_path, text)
    assert found.manifests == (tmp_path / "built/z/crds",)
    assert found.settings == {"apiServers.removedBetas": True}


def test_points_may_count_creations_and_deletions() -> None:
    stated = {"object": {"kind": "Pod", "name": "a"}, "of": "create", "nth": 2}
    plan = perturbations.read({"kind": "hide", **stated}, {"c": None}, "plan")
    assert plan.at == Point("Pod", "a", "default", 2, of="create")
    assert str(plan) == "c does not see the 2nd creation of Pod a before the next one"
    assert perturbations.read(plan.data(), {"c": None}, "plan") == plan
    with pytest.raises(
        KemuError, match="of has to be one of create, update, patch, delete, deleting, asked, not 'made'"
    ):
        perturbations.read({"kind": "hide", **stated, "of": "made"}, {"c": None}, "plan")
