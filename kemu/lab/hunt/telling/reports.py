"""What is left of a finding: its plan, what happened in words and as a picture, and tests that fail while the bug is
there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

import yaml

from kemu.emulated.settings import documents
from kemu.errors import KemuError
from kemu.lab.hunt import perturbations
from kemu.lab.hunt.findings import Finding
from kemu.lab.hunt.judging import oracles
from kemu.lab.hunt.judging.oracles import Symptom
from kemu.lab.hunt.perturbations import Plan
from kemu.lab.hunt.projects import Project, Step
from kemu.lab.tell.explaining import names

PLAN, TEXT, PAGE, PICTURE = "plan.yaml", "finding.md", "finding.html", "picture.svg"
TEST, GO_TEST = "test_finding.py", "finding_test.go"


def write(project: Project, finding: Finding) -> None:
    """Into the folder of the finding."""
    folder = finding.folder.parent
    folder.mkdir(parents=True, exist_ok=True)  # where no repetition has shown it, there is no run either
    places = [project.steps.index(step) for step in finding.steps]
    plan = {
        "hunt": str(project.file.absolute()),
        "steps": [place + 1 for place in places],
        "perturb": data_of_plan(finding.plan),
    }
    (folder / PLAN).write_text(yaml.safe_dump(plan, sort_keys=False))
    (folder / TEXT).write_text(text(project, finding))
    what = perturbations.shown(finding.plan)
    (folder / TEST).write_text(_TEST.format(id=finding.id.replace("-", "_"), what=what))
    (folder / GO_TEST).write_text(_GO_TEST.format(number=finding.number, what=what))
    if finding.picture:
        (folder / PICTURE).write_text(finding.picture)
    (folder / PAGE).write_text(page(project, finding))


def text(project: Project, finding: Finding) -> str:
    """``finding.md``."""
    lines = [f"# {finding.symptoms[0].text}", ""]
    if finding.cause:
        lines += [f"{names.sentence(finding.cause)}.", ""]
    lines += [f"Perturbation: {perturbations.shown(finding.plan)}.", ""]
    if finding.picture:
        lines += [f"![What happened]({PICTURE})", ""]
    for title, symptoms in _symptoms(finding):
        lines += [f"{title}:", "", *(f"* {symptom.text}" for symptom in symptoms), ""]
    lines += [f"It shows {finding.often}. The steps that it takes:", ""]
    lines += [f"{number}. {step}" for number, step in enumerate(finding.steps, 1)]
    lines += ["", "What happened:", "", *(f"    {line}" for line in finding.told), ""]
    if finding.alike:
        lines += ["The same goes wrong when", "", *(f"* {perturbations.shown(one)}" for one in finding.alike), ""]
    lines += ["Again, with a controller that was repaired perhaps, and the run that showed it:", ""]
    lines += [*(f"    {command}" for command in _commands(project, finding)), ""]
    return "\n".join(lines)


def page(project: Project, finding: Finding) -> str:
    """``finding.html``: the same, with the picture in it. It stands alone."""

    def items(texts: Iterable[str], tag: str = "ul") -> str:
        return f"<{tag}>{''.join(f'<li>{escape(one)}</li>' for one in texts)}</{tag}>"

    title = escape(finding.symptoms[0].text)
    parts = [f"<h1>{title}</h1>"]
    if finding.cause:
        parts.append(f"<p class=cause>{escape(names.sentence(finding.cause))}.</p>")
    parts.append(f"<p>Perturbation: {escape(perturbations.shown(finding.plan))}. It shows {escape(finding.often)}.</p>")
    parts.append(f"<figure>{finding.drawing}</figure>" if finding.drawing else "")
    for name, symptoms in _symptoms(finding):
        parts.append(f"<h2>{name}</h2>{items(one.text for one in symptoms)}")
    parts.append(f"<h2>Steps</h2>{items(map(str, finding.steps), 'ol')}")
    told = escape("\n".join(finding.told))
    parts.append(f"<details><summary>What happened, line by line</summary><pre>{told}</pre></details>")
    if finding.alike:
        alike = items(perturbations.shown(one) for one in finding.alike)
        parts.append(f"<h2>The same goes wrong when</h2>{alike}")
    parts.append(f"<h2>Again</h2><pre>{escape(chr(10).join(_commands(project, finding)))}</pre>")
    head = f"<!doctype html>\n<html lang=en><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"
    return "\n".join([head, *filter(None, parts), ""])


def _symptoms(finding: Finding) -> list[tuple[str, list[Symptom]]]:
    """Bugs and costs, with what to call them."""
    bugs = oracles.bugs(finding.symptoms)
    costs = [one for one in finding.symptoms if not one.is_bug]
    return [(title, found) for title, found in (("What goes wrong", bugs), ("At a cost", costs)) if found]


def _commands(project: Project, finding: Finding) -> list[str]:
    run = finding.folder
    found = [f"kemu hunt --again {run.parent}", f"kemu replay {run}", f"kemu report {run}"]
    return [*found, f"kemu story {run}"]


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
        "cause": finding.cause,
        "symptoms": [one.text for one in oracles.bugs(finding.symptoms)],
        "costs": [one.text for one in finding.symptoms if not one.is_bug],
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
_GO_TEST = """// {what}: fails while the bug is there.
//
// It needs kemu on the PATH (pip install kemu), what the hunt starts the controller with, and plan.yaml beside it:
//
//\tgo test -count=1 -timeout 30m finding_test.go
package finding

import (
\t"errors"
\t"os/exec"
\t"testing"
)

func TestFinding{number}(t *testing.T) {{
\tkemu, err := exec.LookPath("kemu")
\tif err != nil {{
\t\tt.Fatal("kemu is not on the PATH: pip install kemu")
\t}}
\tout, err := exec.Command(kemu, "hunt", "--again", ".").CombinedOutput()
\tvar exit *exec.ExitError
\tif errors.As(err, &exit) && exit.ExitCode() == 3 {{
\t\tt.Fatalf("it says nothing, as it did not come about:\\n%s", out)
\t}}
\tif err != nil {{
\t\tt.Fatalf("%v\\n%s", err, out)
\t}}
}}
"""

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem; } h1 { font-size: 1.5rem; line-height: 1.3; }
h2 { font-size: 1.1rem; margin-top: 1.8rem; } .cause { font-size: 1.1rem; }
figure { margin: 1.5rem 0; overflow-x: auto; } pre { overflow-x: auto; font-size: 13px; }
"""
