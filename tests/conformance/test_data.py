"""The shipped cases are all here, and unchanged: ``data/manifest.txt`` pins the digest and the number of each file.

After recording anew, ``python -m tests.conformance.test_data > tests/conformance/data/manifest.txt`` writes it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kemu.lab.conformance import case_files
from tests import samples
from tests.conformance import asked

DATA = Path(__file__).parent / "data"
SUFFIX = ".jsonl.gz"


def manifest(data: Path = DATA) -> str:
    """A line for each file: sha256, number of cases, path."""
    lines = []
    for path in sorted(data.rglob(f"*{SUFFIX}")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"{digest} {sum(1 for _ in case_files.read(path)):>4} {path.relative_to(data).as_posix()}\n")
    return "".join(lines)


def test_no_file_is_missing_or_changed() -> None:
    assert manifest() == (DATA / "manifest.txt").read_text()


def test_each_case_stands_in_the_file_of_its_family_once() -> None:
    known: set[str] = set()
    for path in sorted(DATA.rglob(f"*{SUFFIX}")):
        for case in case_files.read(path):
            assert case.family == path.name.removesuffix(SUFFIX)
            assert case.id not in known
            known.add(case.id)


@pytest.mark.parametrize("is_night", [True, False])
def test_by_night_all_cases_of_a_family_are_asked(is_night: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "NIGHT", is_night)
    asked._step.cache_clear()
    found = {family: len(list(asked.cases(DATA / "kubelet" / f"{family}{SUFFIX}"))) for family in ("qos", "admission")}
    asked._step.cache_clear()
    assert found == {"qos": 400 if is_night else 134, "admission": 400}


if __name__ == "__main__":
    print(manifest(), end="")
