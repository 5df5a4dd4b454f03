"""What once failed fails no more: every scenario in ``kept`` is judged as ``kemu fuzz`` judges it.

The first line of each file is the command that showed the failure, with the relation if it was one.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kemu.lab.fuzz import campaigns

KEPT = sorted((Path(__file__).parent / "kept").glob("*.yaml"))


def test_something_is_kept() -> None:
    assert KEPT


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.stem)
def test_what_once_failed_fails_no_more(file: Path) -> None:
    named = re.search(r"^# .*--relation ([\w-]+)", file.read_text())
    assert campaigns.of_file(file, (named[1],) if named else ()) == []
