"""What newcomers are given: a list of tasks that the code itself makes, and forms for what they report."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"


def listed(*kinds: str) -> dict[str, list[str]]:
    command = [sys.executable, str(ROOT / "scripts" / "tasks"), *kinds]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("  "):
            found[list(found)[-1]].append(line.strip())
        else:
            found[line.removesuffix(":")] = []
    return found


def test_each_kind_of_task_is_listed_where_it_stands() -> None:
    found = listed()
    assert list(found) == ["marks", "gates", "types", "museum", "claims"]
    gates = (ROOT / "kemu" / "lab" / "conformance" / "gates.tsv").read_text().splitlines()
    assert len(found["gates"]) == sum("\tlacks" in line for line in gates)
    assert found["marks"]
    for line in (one for tasks in found.values() for one in tasks):
        file, _, what = line.partition(": ")
        path, _, number = file.partition(":")
        assert (ROOT / path).is_file(), line
        assert len(what) > 20, line
        if number:
            assert int(number) <= len((ROOT / path).read_text().splitlines()), line


def test_a_kind_that_there_is_not_is_refused() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "tasks"), "marks", "easy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "there is no kind easy: marks, gates" in done.stderr) == (2, True)


def test_forms_are_as_github_reads_them_and_name_what_there_is() -> None:
    forms = [file for file in sorted(FORMS.glob("*.yml")) if file.name != "config.yml"]
    assert [file.stem for file in forms] == ["bug", "finding", "kubernetes"]
    for file in forms:
        form = yaml.safe_load(file.read_text())
        assert set(form) == {"name", "description", "labels", "body"}, file
        ids = [one["id"] for one in form["body"] if one["type"] != "markdown"]
        assert len(ids) == len(set(ids)), file
        for one in form["body"]:
            assert one["type"] in {"markdown", "textarea", "input", "dropdown", "checkboxes"}, file
            assert "value" in one["attributes"] if one["type"] == "markdown" else one["attributes"]["label"], file
        for page in re.findall(r"docs/[\w-]+\.md", file.read_text()):
            assert (ROOT / page).is_file(), page
    assert (ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md").is_file()
