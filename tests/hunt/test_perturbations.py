"""Each kind of perturbation finds a bug that is planted for it, and nothing in the same controller without the bug."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from kemu.errors import KemuError
from kemu.lab.hunt import perturbations, planning, projects
from kemu.lab.hunt.courses import manifest
from kemu.lab.hunt.coverage import why_not
from kemu.lab.hunt.judging import oracles
from kemu.lab.hunt.judging.oracles import Reference
from kemu.lab.hunt.running import trials
from kemu.lab.hunt.searches import Hunt
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.up import clusters
from tests.hunt import onlooker

ROOT = Path(__file__).parents[2]

BOX: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "labels": {"keep": "a"}},
    "data": {"size": "1"},
}
SUBJECT = {"kind": "ConfigMap", "name": "a"}
GROWS: list[dict[str, Any]] = [
    {"apply": BOX},
    {"until": "configmap/a .data.seen=1"},
    {"patch": SUBJECT, "with": {"data": {"size": "2"}}},
    {"until": "configmap/a .data.seen=2"},
    {"wait": "5s"},
]
COMES_AGAIN: list[dict[str, Any]] = [
    {"apply": BOX},
    {"until": "configmap/a .data.seen=1"},
    {"delete": SUBJECT},
    {"wait": "5s"},
    {"apply": {**BOX, "data": {"size": "2"}}},
    {"until": "configmap/a .data.seen=2"},
    {"wait": "5s"},
]
PLANS: list[tuple[str, list[dict[str, Any]], dict[str, Any], str]] = [
    ("hasty", GROWS, {"kind": "refuse", "object": {"kind": "Secret"}, "nth": 1, "code": 503}, "missing"),
    ("unsure", GROWS, {"kind": "loseAnswer", "object": {"kind": "Secret"}, "nth": 1}, "surplus"),
    ("impatient", GROWS, {"kind": "pause", "object": {"kind": "Secret"}, "nth": 1}, "stuck"),
    ("impatient", GROWS, {"kind": "slowWrites", "object": {"kind": "Secret"}, "nth": 1}, "stuck"),
    ("fragile", GROWS, {"kind": "outage", "object": SUBJECT, "nth": 1}, "stuck"),
    ("fragile", GROWS, {"kind": "outage", "object": SUBJECT, "nth": 1, "scope": "ConfigMap"}, "stuck"),
    ("forgetful", GROWS, {"kind": "endWatch", "object": SUBJECT, "nth": 3}, "stuck"),
    ("forgetful", GROWS, {"kind": "endWatch", "object": SUBJECT, "when": {"data.size": "2"}}, "stuck"),
    ("double", GROWS, {"kind": "lag", "object": SUBJECT, "scope": "Secret", "until": {"after": "1s"}}, "surplus"),
    ("brittle", GROWS, {"kind": "mutate", "object": SUBJECT, "nth": 1, "field": "data.size", "to": ""}, "crash"),
    ("by-name", COMES_AGAIN, {"kind": "hide", "object": SUBJECT, "nth": 3}, "stuck"),
]  # fmt: skip


def hunt_file(folder: Path, bug: str, steps: list[dict[str, Any]]) -> Path:
    command = ["{python}", str(Path(__file__).parent / "keepers.py"), "--kubeconfig", "{kubeconfig}"]
    spec = {
        "cluster": {"nodes": 1},
        "controllers": [{"name": "keepers", "command": [*command, "--bug", bug] if bug else command}],
        "steps": steps,
        "rest": "10s",
    }
    file = folder / f"{bug or 'careful'}.yaml"
    document = {"apiVersion": "kemu.dev/v1", "kind": "Hunt", "metadata": {"name": "keepers"}, "spec": spec}
    file.write_text(yaml.safe_dump(document))
    return file


class Hunts:
    """Hunts with their references, of which several tests need the same."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[Hunt, Reference, tuple[projects.Step, ...]]] = {}

    def of(self, bug: str, steps: list[dict[str, Any]]) -> tuple[Hunt, Reference, tuple[projects.Step, ...]]:
        name = f"{bug or 'careful'}: {json.dumps(steps)}"
        if name not in self._known:
            folder = self._folder / str(len(self._known))
            folder.mkdir()
            project = projects.load(hunt_file(folder, bug, steps))
            hunt = Hunt(project, folder / "out")
            outcomes = [hunt.trial(project.steps, ()) for _ in range(2)]
            reference = Reference(outcomes, project.ignored, project.steps, project.stable_s)
            self._known[name] = hunt, reference, project.steps
        return self._known[name]


@pytest.fixture(scope="module")
def hunts(tmp_path_factory: pytest.TempPathFactory) -> Hunts:
    return Hunts(tmp_path_factory.mktemp("hunts"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "planted", ["bug", pytest.param("none", marks=pytest.mark.nightly("a second each; by day the bugs are found"))]
)
@pytest.mark.parametrize(
    ("bug", "steps", "plan", "symptom"), PLANS, ids=[f"{one[0]}-{one[2]['kind']}" for one in PLANS]
)
def test_a_planted_bug(
    hunts: Hunts, bug: str, steps: list[dict[str, Any]], plan: dict[str, Any], symptom: str, planted: str
) -> None:
    hunt, reference, done = hunts.of(bug if planted == "bug" else "", steps)
    assert not reference.problems
    perturbation = perturbations.read(plan, {"keepers": 1}, "here")
    outcome = hunt.trial(done, (perturbation,))
    assert outcome.struck
    found = oracles.bugs(reference.symptoms(outcome))
    assert symptom in {one.what for one in found} if planted == "bug" else not found, found


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        ({"kind": "crash"}, "is none of crashAfterWrite, freeze"),
        ({"kind": "pause", "object": SUBJECT, "nth": 0}, "nth has to be a number from 1 on, not 0"),
        ({"kind": "pause", "object": SUBJECT, "until": {"after": "soon"}}, "until.after: "),
        ({"kind": "refuse", "object": SUBJECT, "code": 404}, "code has to be one of 429, 500, 503, 504, not 404"),
        ({"kind": "pause", "object": SUBJECT, "code": 500}, "code is only for refuse"),
        ({"kind": "hide", "object": SUBJECT, "scope": "all"}, "scope is only for freeze, lag, outage"),
        ({"kind": "lag", "object": SUBJECT, "scope": ""}, "scope has to be a kind or all, not ''"),
        ({"kind": "lag", "object": {"kind": "Secret"}}, "object has no name"),
        ({"kind": "conflict", "object": SUBJECT, "until": {"after": "1s"}}, "until is not for conflict"),
        ({"kind": "lag", "object": SUBJECT, "restart": {"object": SUBJECT}}, "restart is only for freeze"),
        ({"kind": "mutate", "object": SUBJECT}, "field has to be as spec.replicas, or a list of keys, not None"),
        ({"kind": "mutate", "object": SUBJECT, "field": "a", "to": {1}}, "to has to be a value of JSON, not {1}"),
        ({"kind": "lag", "object": SUBJECT, "to": 1}, "field and to are only for mutate"),
        ({"kind": "lag", "object": SUBJECT, "size": 1}, "perturb has no key size"),
        ({"kind": "lag", "object": SUBJECT, "when": ["size"]}, "when has to be fields with values: {spec.replicas: 3}"),
        ({"kind": "pause", "object": SUBJECT, "when": {"data.size": 1}}, "when is not for pause, which counts writes"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_plans_that_cannot_be(plan: dict[str, Any], told: str) -> None:
    with pytest.raises(KemuError, match=r"^here: ") as caught:
        perturbations.read(plan, {"keepers": 1}, "here")
    assert told in str(caught.value)


@pytest.mark.parametrize("plan", [one[2] for one in PLANS], ids=lambda plan: plan["kind"])
def test_plans_are_read_as_they_are_written(plan: dict[str, Any]) -> None:
    read = perturbations.read(plan, {"keepers": 1}, "here")
    assert perturbations.read(read.data(), {"keepers": 1}, "here") == read
    assert read.at.kind in str(read)


def test_who_is_not_seen_does_not_wait(hunts: Hunts) -> None:
    hunt, reference, done = hunts.of("", GROWS)
    plan = {"kind": "hide", "object": SUBJECT, "nth": 1}
    outcome = hunt.trial(done, (perturbations.read(plan, {"keepers": 1}, "here"),))
    assert outcome.struck
    assert not outcome.stuck
    seen = [manifest(one.key, one.value)["data"].get("seen") for one in outcome.course.changes
            if one.key.endswith("/a") and one.value is not None]  # fmt: skip
    assert seen[-1] == "2"
    assert "1" not in seen
    assert not oracles.bugs(reference.symptoms(outcome))


def test_what_a_view_from_the_past_tells(tmp_path: Path) -> None:
    """As one API server might: the state of then, then what came after it, and never an older version."""
    steps: list[dict[str, Any]] = [{"apply": BOX}]
    steps += [{"patch": SUBJECT, "with": {"data": {"size": f"{size}"}}} for size in range(2, 5)]
    file = hunt_file(tmp_path, "", [*steps, {"wait": "30s"}])
    document = yaml.safe_load(file.read_text())
    command = ["{python}", "-m", "tests.hunt.onlooker", "{kubeconfig}"]
    document["spec"]["controllers"] = [{"name": "onlooker", "command": command, "directory": str(ROOT)}]
    file.write_text(yaml.safe_dump(document))
    project = projects.load(file)
    plan = {"kind": "freeze", "object": SUBJECT, "nth": 2, "restart": {"object": SUBJECT, "nth": 3}}
    perturbation = perturbations.read(plan, {"onlooker": 1}, "here")
    outcome = Hunt(project, tmp_path / "out").trial(project.steps, (perturbation,))
    assert outcome.struck
    lines = [json.loads(line) for line in (outcome.folder / "onlooker.log").read_text().splitlines()]
    begins = [place for place, line in enumerate(lines) if line[0] == "list "]
    told = lines[begins[1] :]
    told_by = {how: [line[1:3] for line in told if line[0] == how] for how in ("list ", "list 0", *onlooker.HOW)}
    after = [["MODIFIED", "3"], ["MODIFIED", "4"]]
    assert told_by == {
        "list ": [["LIST", "3"]],
        "list 0": [["LIST", "2"]],
        "initial": [["ADDED", "2"], ["BOOKMARK", ""], *after],
        "sure": [["refused", "422"]],
        "legacy": [["ADDED", "2"], *after],
    }
    for how in ("initial", "legacy"):
        revisions = [line[3] for line in told if line[0] == how]
        assert revisions == sorted(revisions)


@pytest.mark.parametrize(("bug", "replicas"), [("unfenced", 1), ("", 2)])
def test_two_replicas(tmp_path: Path, bug: str, replicas: int) -> None:
    """The one that leads is cut off in the middle of its work, the other one takes over, and the first one goes on.
    Where the hunt has one alone, the other one comes for such a plan."""
    file = hunt_file(tmp_path, bug, GROWS)
    document = yaml.safe_load(file.read_text())
    controller = document["spec"]["controllers"][0]
    controller["replicas"] = replicas
    controller["command"].append("--elect")
    file.write_text(yaml.safe_dump(document))
    project = projects.load(file)
    hunt = Hunt(project, tmp_path / "out")
    outcomes = [hunt.trial(project.steps, ()) for _ in range(2)]
    reference = Reference(outcomes, project.ignored, project.steps, project.stable_s)
    assert not reference.problems
    plan = {"kind": "depose", "object": {"kind": "Secret"}, "nth": 1}
    chosen = next(one for one, *_ in planning.plans(outcomes[0]) if one.data()["kind"] == "depose")
    controllers = {one.name: one for one in project.controllers}
    assert perturbations.read({**plan, "controller": "keepers"}, controllers, "here").at.kind == chosen.at.kind
    outcome = hunt.trial(project.steps, (chosen,))
    assert outcome.struck
    assert any(one.controller == "keepers-2" for one in outcome.course.writes)
    found = {one.what for one in oracles.bugs(reference.symptoms(outcome))}
    assert ("surplus" in found) == bool(bug), found
    assert "crash" not in found


def test_who_leads_by_no_lease_cannot_be_deposed(hunts: Hunts) -> None:
    _, reference, _ = hunts.of("", GROWS)
    plan = (perturbations.read({"kind": "depose", "object": SUBJECT, "nth": 1}, {"keepers": 1}, "here"),)
    assert not any(one.what == "depose" for each in planning.plans(reference.outcomes[0]) for one in each)
    with pytest.raises(KemuError, match="keepers leads by no Lease"):
        planning.check(plan, reference.outcomes[0])


def test_a_second_replica_that_cannot_start(tmp_path: Path) -> None:
    """Such as two that want one port: the plan has not come about, and the hunt goes on."""
    file = hunt_file(tmp_path, "", GROWS)
    project = projects.load(file)
    controller = project.controllers[0]
    fails = "case {kubeconfig} in *-2) echo address already in use; exit 1;; esac"
    program = f"{fails}; exec {shlex.join(controller.command)} --elect"
    project = replace(project, controllers=(replace(controller, command=("sh", "-c", program)),))
    plan = (perturbations.read({"kind": "depose", "object": {"kind": "Secret"}, "nth": 1}, {"keepers": 1}, "here"),)
    outcome = Hunt(project, tmp_path / "out").trial(project.steps, plan)
    assert not outcome.struck
    assert "keepers-2 did not stand by: " in why_not(plan, outcome)
    assert not outcome.crashes
    assert not outcome.stuck


@pytest.mark.slow
def test_a_job_that_a_step_deletes_takes_its_pods_with_it(hunts: Hunts) -> None:
    containers = [{"name": "main", "image": "busybox", "command": ["sleep", "600"]}]
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": containers}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": pod}}}
    subject = {"kind": "Job", "name": "j"}
    steps: list[dict[str, Any]] = [
        {"apply": job},
        {"until": "job/j .status.active=1"},
        {"delete": subject},
        {"wait": "10s"},
    ]
    hunt, reference, done = hunts.of("", [{"apply": BOX}, *steps])
    assert not reference.problems
    deleted = hunt.trial(done, ()).counted()["deleted"]
    assert (deleted["Job"], deleted["Pod"]) == (1, 1), "kubectl says Background, and so do steps"


@pytest.mark.slow
def test_the_cluster_is_read_once_for_all_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "more.yaml").write_text(yaml.safe_dump({**BOX, "metadata": {"name": "b"}}))
    file = hunt_file(tmp_path, "", [{"apply": BOX}, {"wait": "1s"}])
    document = yaml.safe_load(file.read_text())
    document["spec"]["cluster"]["manifests"] = ["more.yaml"]
    file.write_text(yaml.safe_dump(document))
    project = projects.load(file)
    read: list[int] = []

    def of_nodes(*given: Any) -> Scenario:
        read.append(1)
        return clusters.of_nodes(*given)

    monkeypatch.setattr(trials, "clusters", SimpleNamespace(**{**vars(clusters), "of_nodes": of_nodes}))
    hunt = Hunt(project, tmp_path / "out")
    for _ in range(2):
        assert "/b" in str(list(hunt.trial(project.steps, ()).objects()))
    assert len(read) == 1
    (tmp_path / "more.yaml").write_text(yaml.safe_dump({**BOX, "metadata": {"name": "c"}}))
    assert "/c" in str(list(hunt.trial(project.steps, ()).objects()))
    assert len(read) == 2, "a file that has changed is read anew"
