"""The experiments about what the source documents leave open, and the page of their results."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from kemu.emulated.settings import documents
from kemu.lab.sweep.experiments import loader

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = [
    path for path in sorted((ROOT / "experiments").glob("*.yaml")) if "quotes" in documents.read(path)[0].data["spec"]
]
SOURCES = ROOT.parent / "shared" / "seeds"


def plain(text: str) -> str:
    """Without line breaks and what Markdown and typography add."""
    words = re.sub(r"\s+", " ", re.sub(r"[`*_]|\[([^\]]*)\]\([^)]*\)", r"\1", text))
    return words.translate({0x201C: '"', 0x201D: '"', 0x2019: "'"}).strip()


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_an_experiment_says_what_it_is_about(file: Path) -> None:
    experiment = loader.load(file)
    assert experiment.name == file.stem
    assert documents.read(file)[0].data["spec"]["question"]
    assert experiment.claims


@pytest.mark.skipif(not SOURCES.exists(), reason="not beside the project: ../shared/seeds, the source documents")
@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_quotations_are_exact(file: Path) -> None:
    sources = {path.name[:3]: plain(path.read_text()) for path in SOURCES.glob("*.txt")}
    for quote in documents.read(file)[0].data["spec"]["quotes"]:
        number = re.search(r"\(document (\d+)\)$", quote["document"])
        assert number, quote["document"]
        assert plain(quote["text"]) in sources[number[1]]


@pytest.fixture
def findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """``scripts/findings`` with one experiment of its own, stored and written."""
    script = importlib.machinery.SourceFileLoader("findings_script", str(ROOT / "scripts" / "findings"))
    spec = importlib.util.spec_from_loader("findings_script", script)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    script.exec_module(module)
    (tmp_path / "results").mkdir()
    name = "ping-pong"
    for folder in ("", "results/"):
        for file in (ROOT / "experiments" / folder).glob(f"{name}.*"):
            (tmp_path / folder / file.name).write_text(file.read_text())
    monkeypatch.setattr(module, "EXPERIMENTS", tmp_path)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(module, "PAGE", tmp_path / "findings.md")
    monkeypatch.setattr(module, "ORDER", (name,))
    module.PAGE.write_text(module.page())
    assert list(module.complaints()) == []
    return module


def test_results_belong_to_the_experiment_as_it_stands(findings: ModuleType) -> None:
    file = findings.EXPERIMENTS / "ping-pong.yaml"
    file.write_text(file.read_text().replace("rate: 0.1/s", "rate: 0.2/s"))
    assert "has changed since its results were stored" in next(findings.complaints())


def test_words_may_change_without_another_run_and_the_page_follows(findings: ModuleType) -> None:
    file = findings.EXPERIMENTS / "ping-pong.yaml"
    file.write_text(file.read_text().replace("  finding: >-\n", "  finding: >-\n    In other words:\n"))
    assert list(findings.complaints()) == [
        "docs/findings.md differs from the stored results: scripts/findings writes it"
    ]
    findings.PAGE.write_text(findings.page())
    assert "In other words:" in findings.PAGE.read_text()
    assert list(findings.complaints()) == []


def test_a_figure_that_changed_makes_another_page(findings: ModuleType) -> None:
    file = findings.RESULTS / "ping-pong.json"
    found = json.loads(file.read_text())
    found["variants"][0]["metrics"]["evictions"]["mean"] += 1
    file.write_text(json.dumps(found))
    assert list(findings.complaints()) == [
        "docs/findings.md differs from the stored results: scripts/findings writes it"
    ]


def test_what_became_of_claims_on_more_nodes(findings: ModuleType) -> None:
    def claims(**outcomes: str) -> list[dict[str, str]]:
        return [{"id": name.replace("_", "-"), "outcome": outcome} for name, outcome in outcomes.items()]

    small = claims(a="holds", b_c="fails", d="holds", e="undecided", f="undecided", g="holds")
    large = claims(a="holds", b_c="fails", d="fails", e="holds", f="undecided", g="undecided")
    assert findings.compared(small, large) == (
        "stands: a, b c; turns: d; is decided: e; stays undecided: f; is undecided: g"
    )


def test_the_large_repetition_is_the_same_experiment_on_more_nodes(findings: ModuleType) -> None:
    large = findings.large("ping-pong")
    experiment, _ = findings.load("ping-pong")
    assert 500 < len(large.scenario.nodes) <= findings.LARGE_NODES
    assert large.variants == experiment.variants
    assert [claim.id for claim in large.claims] == [claim.id for claim in experiment.claims]
    assert findings.digest(large) != findings.digest(experiment)
