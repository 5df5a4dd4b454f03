"""Every piece shows its bug at its recorded seed, and the cure works.

That the scenarios hold on both sides is seen where all shipped ones run (tests/scenarios/test_shipped.py).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.emulated import variants
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from tests.museum.pieces import PIECES, Piece, sides

PAGES = Path(__file__).resolve().parents[2] / "docs" / "museum"


def verdict(piece: Piece, overrides: dict[str, Any], out: Path) -> dict[str, Any]:
    scenario = loader.load(catalog.find(piece.scenario), overrides=overrides)
    (found,) = runner.run_all(scenario, runner.Options(out=out, runtime="sim"))[:1]
    return found


@pytest.mark.parametrize("piece", PIECES.values(), ids=lambda piece: str(piece.number))
def test_the_bug_breaks_the_claim_and_the_cure_keeps_it(piece: Piece, tmp_path: Path) -> None:
    bug, cure = sides(loader.load(catalog.find(piece.scenario)))
    claim = {"id": "claim", **yaml.safe_load(piece.claim)}
    sick, healthy = (
        verdict(piece, {**side, "expect": [claim]}, tmp_path / name) for name, side in (("bug", bug), ("cure", cure))
    )
    (broken,) = sick["expectations"]
    assert (sick["verdict"], broken["holds"]) == ("fails", False)
    assert healthy["verdict"] == "holds", healthy["expectations"]


@pytest.mark.parametrize("piece", PIECES.values(), ids=lambda piece: str(piece.number))
def test_the_page_names_issue_and_commands(piece: Piece) -> None:
    page = (PAGES / f"{piece.number}.md").read_text()
    assert piece.link in page
    assert f"kemu run {piece.scenario}" in page


def test_every_scenario_has_its_piece_and_every_page_its_scenario() -> None:
    shipped = [name for name in catalog.shipped() if name.startswith("museum/")]
    assert sorted(PIECES) == sorted(shipped)
    pages = [path.stem for path in PAGES.glob("*.md") if path.stem != "README"]
    assert sorted(pages) == sorted(str(piece.number) for piece in PIECES.values())


def test_every_bug_is_shown() -> None:
    used = {bug for name in PIECES for bug in re.findall(r"k8s-\d+", catalog.find(name).read_text())}
    assert used == {*variants.names(variants.BUG), *variants.names(variants.FIX)}
