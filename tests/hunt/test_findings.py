"""What is left of a finding: the smallest steps and plan, why it goes wrong, the picture, and its files."""

from __future__ import annotations

import ast
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kemu.lab.hunt import findings
from kemu.lab.hunt.explaining import causes, pictures
from kemu.lab.hunt.findings import Finding
from kemu.lab.hunt.judging.oracles import Reference, Symptom
from kemu.lab.hunt.perturbations import Kind, Perturbation, Plan, Point
from kemu.lab.hunt.projects import Controller, Named, Project, Step
from kemu.lab.hunt.running.trials import Outcome
from kemu.lab.hunt.telling import reports
from kemu.runtime.env import SECOND_NS
from tests.hunt.recorded import OPERATOR, Recording, claim, config, reference, stateful, symptoms

STEPS = (
    Step("apply", objects=(stateful("z", 3),)),
    Step("patch", Named("StatefulSet", "z")),
    Step("wait", seconds=30),
    Step("patch", Named("StatefulSet", "z")),
)
FROZEN = (
    Perturbation(
        Kind.FREEZE, OPERATOR, Point("StatefulSet", "z", "default", 2), Point("StatefulSet", "z", "default", 3)
    ),
)


def scaled(is_frozen: bool) -> Recording:
    """A stateful set is scaled to one and to three; the operator removes claims that are not needed."""
    found = Recording()
    found.outcome.deeds = [(SECOND_NS * at_s, place) for place, at_s in enumerate((10, 20, 21, 60))]
    found.put(10, stateful("z", 3))
    found.told(10, stateful("z", 3))
    found.put(11, claim("data-z-2"))
    found.put(20, stateful("z", 1))
    found.told(20, stateful("z", 1))
    found.remove(20.5, claim("data-z-2"), OPERATOR)
    old = found.course.revision
    found.put(60, stateful("z", 3))
    found.put(60.1, claim("data-z-2"))
    if is_frozen:
        found.start(60.2)
        found.read(60.3, "/registry/statefulsets/default/", old)
        found.read(60.3, "/registry/persistentvolumeclaims/default/")
        found.remove(61.2, claim("data-z-2"), OPERATOR)
        found.put(80, claim("data-z-2"))
        found.told(80.2, stateful("z", 3), old + 1)
    return found


def test_the_cause_is_what_it_had_not_seen() -> None:
    normal, found = scaled(False), scaled(True)
    wrong = symptoms(normal, found)
    assert wrong[0].what == "claim"
    cause = causes.of(found.outcome, normal.outcome, FROZEN, wrong[0])
    assert cause.text == (
        "operator deleted PersistentVolumeClaim data-z-2 at 61.2 s: it had read StatefulSet z at revision 4"
        " (spec.replicas 1), 1 change behind; it did not see change 3 (spec.replicas 3)"
    )


def test_the_cause_is_what_it_did_not_do() -> None:
    normal, found = Recording(), Recording()
    for one in (normal, found):
        one.put(1, config("c"))
        one.told(1, config("c"))
    normal.put(2, config("c", {"a": "1"}), OPERATOR)
    for what, told in (
        (Kind.CONFLICT, "the write of operator to ConfigMap c failed, and it did not try again"),
        (
            Kind.EXPIRE,
            (
                "the watch of ConfigMap expired at 1.0 s, and operator was told nothing of ConfigMap c from then on,"
                " and never wrote ConfigMap c, as in the reference"
            ),
        ),
    ):
        plan = (Perturbation(what, OPERATOR, Point("ConfigMap", "c", "default", 1)),)
        assert causes.of(found.outcome, normal.outcome, plan, Symptom("stuck", "x", "x")).text == told


def test_the_picture() -> None:
    normal, found = scaled(False), scaled(True)
    wrong = symptoms(normal, found)
    cause = causes.of(found.outcome, normal.outcome, FROZEN, wrong[0])
    drawn = pictures.alone(pictures.diagram(found.outcome, STEPS, FROZEN, cause, wrong), FROZEN, cause, wrong)
    words = [one.text for one in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    for told in (
        "user",
        "StatefulSet z",
        "PersistentVolumeClaim data-z-2",
        "operator",
        "starts again, sees StatefulSet of change 2",
        "sees StatefulSet as of change 2",
        "change 3",
        "3: spec.replicas 3",
        "61.200 s",
    ):
        assert told in words, (told, words)


class Fake:
    """Trials that go wrong where a step and a plan are enough."""

    def __init__(self, needed: Sequence[Step], is_enough: Plan) -> None:
        self.needed = needed
        self.is_enough = is_enough
        self.tried = 0

    def trial(self, steps: Sequence[Step], plan: Plan) -> Outcome:
        self.tried += 1
        found = scaled(self._fails(steps, plan)).outcome
        found.folder = Path(__file__).parent
        return found

    def _fails(self, steps: Sequence[Step], plan: Plan) -> bool:
        def at_least(one: Perturbation, least: Perturbation) -> bool:
            kept = replace(one, seconds=0, at=replace(one.at, nth=1), scope="")
            same = replace(least, seconds=0, at=replace(least.at, nth=1), scope="")
            return kept == same and one.at.nth >= least.at.nth and one.lasts_s >= least.lasts_s

        return set(self.needed) <= set(steps) and all(
            any(at_least(one, each) for one in plan) for each in self.is_enough
        )

    def trials(self, steps: Sequence[Step], plan: Plan, times: int) -> Iterator[Outcome]:
        return (self.trial(steps, plan) for _ in range(times))

    def reference(self, steps: Sequence[Step]) -> Reference:
        return reference(scaled(False), scaled(False))


def test_steps_and_plan_are_shrunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Step, "__hash__", lambda self: hash(self.what + str(self.subject) + str(self.seconds)))
    monkeypatch.setattr(shutil, "copytree", lambda source, kept: kept.mkdir(parents=True))
    lag = Perturbation(Kind.LAG, OPERATOR, Point("StatefulSet", "z", "default", 2), seconds=5)
    crash = Perturbation(Kind.CRASH, OPERATOR, Point("ConfigMap", "c", "default", 1))
    trials = Fake(STEPS[2:3], (lag,))
    plan = (crash, replace(lag, at=replace(lag.at, nth=4), seconds=20, scope="all"))
    wrong = symptoms(scaled(False), scaled(True))
    found = findings.examine(trials, STEPS, plan, wrong, 1, tmp_path, 3)
    assert found.steps == STEPS[2:3]
    assert found.plan == (replace(lag, scope="StatefulSet"),)
    assert (found.shown, found.tried) == (3, 3)
    assert found.cause.startswith("operator deleted PersistentVolumeClaim data-z-2 at 61.2 s")
    assert found.picture.startswith("<svg")


def finding(folder: Path) -> tuple[Project, Finding]:
    project = Project("h", folder / "h.yaml", (Controller(OPERATOR, ("run",)),), STEPS)
    normal, recorded = scaled(False), scaled(True)
    wrong = symptoms(normal, recorded)
    cause = causes.of(recorded.outcome, normal.outcome, FROZEN, wrong[0])
    diagram = pictures.diagram(recorded.outcome, STEPS, FROZEN, cause, wrong)
    run = folder / "finding-1" / "run"
    run.mkdir(parents=True)
    found = Finding(1, FROZEN, STEPS, wrong, run, 3, 3, [], ["line < 1"], cause.text)
    found.picture, found.drawing = pictures.alone(diagram, FROZEN, cause, wrong), pictures.within(diagram)
    return project, found


def test_the_files_of_a_finding(tmp_path: Path) -> None:
    project, found = finding(tmp_path)
    reports.write(project, found)
    folder = tmp_path / "finding-1"
    text = (folder / "finding.md").read_text()
    assert text.splitlines()[2].startswith("Operator deleted PersistentVolumeClaim data-z-2 at 61.2 s: it had read")
    assert "![What happened](picture.svg)" in text
    assert (folder / "picture.svg").read_text() == found.picture
    html = (folder / "finding.html").read_text()
    assert found.drawing in html
    assert "line &lt; 1" in html
    ast.parse((folder / "test_finding.py").read_text())
    assert reports.read(folder, project) == (FROZEN, STEPS)


@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go")
def test_the_go_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks ``kemu hunt --again`` for its own folder."""
    project, found = finding(tmp_path)
    reports.write(project, found)
    folder = tmp_path / "finding-1"
    (tmp_path / "bin").mkdir()
    kemu = tmp_path / "bin" / "kemu"
    kemu.write_text('#!/bin/sh\n[ "$*" = "hunt --again ." ] && [ -f plan.yaml ] || exit 9\necho told\nexit $CODE\n')
    kemu.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{Path(str(shutil.which('go'))).parent}:/usr/bin:/bin")
    for command in ("go vet finding_test.go", "go test -c -p 1 -o finding finding_test.go"):
        done = subprocess.run(command.split(), cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for code, passes in ((0, True), (1, False), (3, False)):
        monkeypatch.setenv("CODE", str(code))
        done = subprocess.run(["./finding"], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode == 0) == passes, done.stdout + done.stderr
        assert passes or "told" in done.stdout
