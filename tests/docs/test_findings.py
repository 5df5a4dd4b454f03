"""The experiments about what the source documents leave open, and the page of their results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kemu.scenario.format import documents
from kemu.sweep.experiments import loader

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


@pytest.mark.skipif(
    not SOURCES.exists(), reason="the source documents are not part of the project: ../shared/seeds is absent"
)
@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_quotations_are_exact(file: Path) -> None:
    sources = {path.name[:3]: plain(path.read_text()) for path in SOURCES.glob("*.txt")}
    for quote in documents.read(file)[0].data["spec"]["quotes"]:
        number = re.search(r"\(document (\d+)\)$", quote["document"])
        assert number, quote["document"]
        assert plain(quote["text"]) in sources[number[1]]
