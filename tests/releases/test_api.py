"""The public Python API is compared with that of an earlier commit (``scripts/check-api``)."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import griffe
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def check() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("check_api", str(ROOT / "scripts" / "check-api"))
    spec = importlib.util.spec_from_loader("check_api", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("module", "was", "becomes", "told"),
    [
        ("kemu.doors.api.runs", "def run(\n    scenario:", "def run(\n    scenery:", ("kemu.run(scenario)", "removed")),
        ("kemu.doors.api.runs", "    def story(self", "    def tale(self", ("kemu.Run.story", "removed")),
        ("kemu.errors", "class UsageError(", "class UseError(", ("kemu.errors.UsageError", "is gone")),
    ],
)
def test_what_breaks_a_caller_is_found(
    check: ModuleType, module: str, was: str, becomes: str, told: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    after = check.Sources(ROOT)
    text = after._file(module).read_text()
    assert was in text
    changed = text.replace(was, becomes)
    after._modules[module] = griffe.visit(module, after._file(module), changed)
    if module in check.PUBLIC:
        exported = {f"{module}.{name}" for name in after._modules[module].members if not name.startswith("_")}
        monkeypatch.setattr(after, "exported", lambda asked: {each.rpartition(".")[2]: each for each in exported})
        monkeypatch.setattr(check, "PUBLIC", (module,))
    found = [(path, what) for path, what in check.breaks(check.Sources(ROOT), after) if told[1] in what]
    assert [path for path, _ in found] == [told[0]]


def test_every_public_name_is_found(check: ModuleType) -> None:
    import kemu

    sources = check.Sources(ROOT)
    assert set(sources.exported("kemu")) == set(kemu.__all__)
    assert [name for name, path in sources.exported("kemu").items() if sources.of(path) is None] == []


def test_breaks_that_are_meant_stand_in_the_changelog(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "# Changelog\n\n## [2.0.0]\n\n### Breaking\n\n- `kemu.Run.story` is gone.\n\n"
    text += "## [1.0.0]\n\n### Breaking\n- `old`\n"
    (tmp_path / "CHANGELOG.md").write_text(text)
    monkeypatch.setattr(check, "ROOT", tmp_path)
    assert check.meant() == {"kemu.Run.story"}
