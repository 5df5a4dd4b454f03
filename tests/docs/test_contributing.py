"""What newcomers are given: a list of tasks that the code itself makes, and forms for what they report."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
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


PYTHON_SCRIPTS = [file for file in sorted((ROOT / "scripts").iterdir()) if b"python" in file.read_bytes()[:30]]


@pytest.mark.parametrize("file", PYTHON_SCRIPTS, ids=lambda file: file.name)
def test_a_script_that_needs_the_environment_goes_on_there_before_it_imports_anything_of_it(file: Path) -> None:
    text = file.read_text()
    found = [
        name.partition(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    ]
    beyond = [name for name in found if name not in sys.stdlib_module_names]
    if beyond or ".venv" in text:
        assert beyond[0] == "in_venv"


@pytest.fixture
def outside(tmp_path: Path) -> list[str]:
    """A command that runs a script with a Python without kemu, in a project whose setup makes a stand-in for .venv."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "in_venv.py", tmp_path / "scripts")
    (tmp_path / "scripts" / "tool").write_text("import in_venv\nprint('went on outside')\n")
    setup = tmp_path / "scripts" / "setup"
    setup.write_text("""\
#!/bin/sh
echo setting up
cd "$(dirname "$0")/.." && mkdir -p .venv/bin && printf '#!/bin/sh\\necho inside "$@"' > .venv/bin/python
chmod +x .venv/bin/python
""")
    setup.chmod(0o755)
    return [sys.executable, "-S", str(tmp_path / "scripts" / "tool"), "--check", "a b"]


def test_a_script_sets_the_environment_up_and_goes_on_in_it(outside: list[str]) -> None:
    done = subprocess.run(outside, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "setting up\n")
    assert done.stdout.split() == ["inside", *outside[2].split(), "--check", "a", "b"]


def test_where_the_environment_cannot_be_made_a_script_ends_as_its_setup(outside: list[str]) -> None:
    setup = Path(outside[2]).with_name("setup")
    setup.write_text("#!/bin/sh\necho Python 3.11 is needed >&2\nexit 3\n")
    done = subprocess.run(outside, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "Python 3.11 is needed\n")


def test_a_python_that_has_kemu_is_left_alone(outside: list[str]) -> None:
    done = subprocess.run([sys.executable, *outside[2:]], capture_output=True, text=True, check=False)
    assert done.stdout == "went on outside\n"
