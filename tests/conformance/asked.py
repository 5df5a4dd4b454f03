"""The recorded cases that are asked by day: of large families some."""

from __future__ import annotations

from pathlib import Path

from kemu.lab.conformance import case_files
from tests.samples import of_a_day

ENOUGH = 130
"""Cases of a family: what they are drawn from comes up in fewer, and so do the bugs of ``test_mutants.py`` …"""
WHOLE = ("admission", "preempt")
"""… but for those of these families: some bugs come up in a case or two."""


def cases(file: Path) -> list[case_files.Case]:
    found = list(case_files.read(file))
    return found if file.name.split(".")[0] in WHOLE else of_a_day(found, ENOUGH)
