"""``kemu conformance``: what it prints, its exit codes, and that it can find a difference."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli import main

DATA = Path(__file__).parent / "data" / "kubelet"


def _first_case(family: str) -> dict[str, Any]:
    with gzip.open(DATA / f"{family}.jsonl.gz", "rt") as lines:
        case: dict[str, Any] = json.loads(next(lines))
    return case


def test_agreement_is_the_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["conformance", "kubelet", str(DATA / "qos.jsonl.gz")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "agreement: 400/400"


def test_a_difference_is_shown_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = _first_case("qos")
    case["expect"]["qosClass"] = "Nonsense"
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(case) + "\n")
    assert main.main(["conformance", "kubelet", str(path)]) == 1
    printed = capsys.readouterr().out
    assert '"Nonsense"' in printed
    assert " | " in printed
    assert printed.splitlines()[-1] == "agreement: 0/1"


def test_json_is_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right, wrong = _first_case("critical"), _first_case("admission")
    wrong["expect"]["outcomes"] = [{"admit": False, "reason": "Mood"}]
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in (right, wrong)))
    assert main.main(["conformance", "kubelet", str(path), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["families"] == {"critical": {"agree": 1, "total": 1}, "admission": {"agree": 0, "total": 1}}
    assert (report["agree"], report["total"]) == (1, 2)
    assert [one["id"] for one in report["disagreements"]] == ["admission-1"]


@pytest.mark.parametrize(
    "content", [b"", b"{}\n", b"no json\n", b"\x1f\x8bbroken", b'{"case": {"id": 1}, "expect": {}}\n']
)
def test_a_file_without_cases_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cases.jsonl.gz"
    path.write_bytes(content)
    assert main.main(["conformance", "kubelet", str(path)]) == 2
    assert main.main(["conformance", "kubelet", str(tmp_path / "missing")]) == 2


def test_an_unknown_kind_is_an_input_error() -> None:
    assert main.main(["conformance", "weather", str(DATA / "qos.jsonl.gz")]) == 2


def test_what_kemu_cannot_answer_disagrees(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text('{"case": {"id": "unheard-of-1"}, "expect": {}}\n')
    assert main.main(["conformance", "kubelet", str(path)]) == 1
