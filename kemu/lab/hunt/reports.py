"""What is left of a finding: its plan, what happened in words, and a test that fails while the bug is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kemu.emulated.settings import documents
from kemu.errors import KemuError
from kemu.lab.hunt import perturbations
from kemu.lab.hunt.findings import Finding
from kemu.lab.hunt.perturbations import Plan
from kemu.lab.hunt.projects import Project, Step

PLAN, TEXT, TEST = "plan.yaml", "finding.md", "test_finding.py"


def write(project: Project, finding: Finding) -> None:
    """Into the folder of the finding."""
    folder = finding.folder.parent
    places = [project.steps.index(step) for step in finding.steps]
    plan = {
        "hunt": str(project.file.absolute()),
        "steps": [place + 1 for place in places],
        "perturb": data_of_plan(finding.plan),
    }
    (folder / PLAN).write_text(yaml.safe_dump(plan, sort_keys=False))
    (folder / TEXT).write_text(text(project, finding))
    (folder / TEST).write_text(_TEST.format(id=finding.id.replace("-", "_"), what=perturbations.shown(finding.plan)))


def text(project: Project, finding: Finding) -> str:
    lines = [f"# {finding.symptoms[0].text}", "", f"{perturbations.shown(finding.plan)}. Then:", ""]
    lines += [f"* {symptom.text}" for symptom in finding.symptoms]
    lines += ["", f"It shows {finding.often}. The steps that it takes:", ""]
    lines += [f"{number}. {step}" for number, step in enumerate(finding.steps, 1)]
    lines += ["", "What happened:", "", *(f"    {line}" for line in finding.told), ""]
    if finding.alike:
        lines += ["The same goes wrong when", "", *(f"* {perturbations.shown(one)}" for one in finding.alike), ""]
    folder = finding.folder.parent
    lines += [
        "Again, with a controller that was repaired perhaps:",
        "",
        f"    kemu hunt --again {folder}",
        f"    kemu story {finding.folder}",
        f"    kemu replay {finding.folder}",
        "",
    ]
    return "\n".join(lines)


def read(folder: Path, project: Project) -> tuple[Plan, tuple[Step, ...]]:
    """The plan of a finding, or of a file. Raises KemuError and ScenarioError."""
    file = folder / PLAN if folder.is_dir() else folder
    if not file.exists():
        raise KemuError(f"{file}: there is no such plan")
    found = documents.read(file)
    data: Any = found[0].data if found else None
    if not isinstance(data, Mapping) or "perturb" not in data:
        raise KemuError(f"{file}: is no plan: it has no perturb")
    controllers = {one.name: one for one in project.controllers}
    stated = data["perturb"]
    stated = stated if isinstance(stated, list) else [stated]
    plan = tuple(perturbations.read(one, controllers, str(file)) for one in stated)
    places = data.get("steps", list(range(1, len(project.steps) + 1)))
    if not isinstance(places, list) or not all(
        isinstance(one, int) and 1 <= one <= len(project.steps) for one in places
    ):
        raise KemuError(f"{file}: steps has to be a list of numbers from 1 to {len(project.steps)}")
    return plan, tuple(project.steps[place - 1] for place in places)


def hunt_of(folder: Path) -> Path:
    """The file of the hunt that has made a finding. Raises KemuError."""
    file = folder / PLAN
    if not file.exists():
        raise KemuError(f"{folder}: is no folder of a finding: {PLAN} is missing")
    data: Any = documents.read(file)[0].data
    if not isinstance(data, Mapping) or not isinstance(data.get("hunt"), str):
        raise KemuError(f"{file}: does not say of which hunt it is")
    return Path(data["hunt"])


def data_of_plan(plan: Plan) -> object:
    """One perturbation as a mapping, several as a list."""
    found = [one.data() for one in plan]
    return found[0] if len(found) == 1 else found


def data_of(finding: Finding) -> dict[str, Any]:
    """For JSON."""
    at = finding.plan[0]
    return {
        "id": finding.id,
        "perturbation": {
            "kind": at.what,
            "object": str(at.at.subject),
            "at": at.at.nth,
            "plan": data_of_plan(finding.plan),
        },
        "symptom": finding.symptoms[0].text,
        "symptoms": [one.text for one in finding.symptoms],
        "shown": f"{finding.shown}/{finding.tried}",
        "share": [round(end, 3) for end in finding.interval],
        "shrunk": {"steps": len(finding.steps), "perturbations": len(finding.plan)},
        "alike": len(finding.alike),
        "again": f"kemu hunt --again {finding.folder.parent}",
    }


_TEST = '''"""{what}: fails while the bug is there."""

from __future__ import annotations

import subprocess
from pathlib import Path


def test_{id}() -> None:
    found = subprocess.run(["kemu", "hunt", "--again", Path(__file__).parent], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
'''
