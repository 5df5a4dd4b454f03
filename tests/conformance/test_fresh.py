"""Every family of cases can be asked anew, and what differs is told with the commands that show it again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kemu.lab.conformance import case_files, registry
from tests.conformance import fresh
from tests.conformance.generate import GENERATORS

ELECTIONS = Path(__file__).parent / "data" / "elections" / "elections.jsonl.gz"


def test_every_family_is_asked() -> None:
    asked = [family for one in fresh.ASKED for family in one.families]
    assert len(asked) == len(set(asked))
    assert set(asked) | set(fresh.ELSEWHERE) == set(GENERATORS)
    assert {one.kind for one in fresh.ASKED} <= set(registry.names())
    assert sum(fresh.counts(5500).values()) == pytest.approx(5500, abs=50)
    assert set(fresh.counts(1).values()) == {1}


@pytest.mark.parametrize("is_planted", [False, True])
def test_what_differs_is_told(is_planted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [{"case": case.question, "expect": case.expect} for case in case_files.read(ELECTIONS)][:3]
    if is_planted:
        cases[1]["expect"]["lease"]["transitions"] += 1
    (tmp_path / "recorded").write_text("".join(f"{json.dumps(case)}\n" for case in cases))
    asked = fresh.Asked("elections", ("sh", "-c", f"cat {tmp_path / 'recorded'}"), {"elections": 1})
    report = fresh.compare(asked, "elections", 7, 3)
    assert (report.agree, report.total) == (2 if is_planted else 3, 3)
    for found in report.disagreements:
        fresh.tell(asked, "elections", 7, found)
    assert ("--count 2 | tail -n 1" in capsys.readouterr().out) == is_planted


def test_a_recorder_that_leaves_all_out_or_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other families are asked all the same, and the whole fails."""
    asked = (
        fresh.Asked("elections", ("true",), {"elections": 1}),
        fresh.Asked("scheduler", ("sh", "-c", "echo building >&2; echo no such tag >&2; exit 3"), {"sampling": 1}),
    )
    monkeypatch.setattr(fresh, "ASKED", asked)
    monkeypatch.setattr("sys.argv", ["fresh", "--seed", "7", "--cases", "4"])
    assert fresh.main() == 1
    assert [line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()] == [
        "the recorder leaves all 2 cases out",
        "the recorder ended with 3: no such tag",
        "cases of seed 7: 0 of 0 agree, without elections, sampling",
    ]
