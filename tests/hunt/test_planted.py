"""One plan for a planted bug shows it, and nothing where it is mended; with the official client, and with kopf in
virtual time. All bugs are searched at night: ``python -m tests.hunt.planted``."""

from __future__ import annotations

import runpy

import pytest

from tests.hunt import planted, readings


@pytest.mark.parametrize(
    "careful",
    [False, pytest.param(True, marks=pytest.mark.nightly("five seconds each, as for all others"))],
    ids=["planted", "mended"],
)
@pytest.mark.parametrize("name", ["moment", "events"])
def test_plans(name: str, careful: bool) -> None:
    symptoms = planted.known(planted.BUGS[name], careful=careful)
    assert bool(symptoms) is not careful, symptoms


def test_every_hunt_has_a_bug_and_a_plan() -> None:
    files = {file.stem for file in planted.HERE.glob("*.yaml")} - {"crd", "plans"}
    assert files == planted.BUGS.keys() == planted.plans().keys()
    for group in {one.group for one in planted.BUGS.values()}:
        assert len([one for one in planted.BUGS.values() if one.group == group]) >= 2, group


def test_every_finding_was_read() -> None:
    assert readings.readings().keys() == readings.findings()
    assert {one["verdict"] for one in readings.readings().values()} <= set(readings.VERDICTS)
    assert all(one["why"] for one in readings.readings().values())


def test_the_table_is_that_of_the_results() -> None:
    assert planted.table() in (planted.ROOT / "docs/hunting.md").read_text()


def test_the_page_of_sieve_is_that_of_the_results() -> None:
    assert (
        runpy.run_path(str(planted.ROOT / "scripts/sieve"))["page"]()
        == (planted.ROOT / "docs/hunting-sieve.md").read_text()
    )
