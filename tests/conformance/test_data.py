"""The shipped cases are all here, and unchanged: ``data/manifest.txt`` pins the digest and the number of each file.

After recording anew, ``python -m tests.conformance.test_data > tests/conformance/data/manifest.txt`` writes it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from kemu.lab.conformance import case_files

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


if __name__ == "__main__":
    print(manifest(), end="")
