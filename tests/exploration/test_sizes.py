"""What shrinking made of the museum's pieces and the lost safeguards is small, or larger for a reason."""

from __future__ import annotations

import pytest

from tests.exploration import sizes

RECORDS = sizes.records()


@pytest.mark.parametrize("name", RECORDS)
def test_it_is_small_or_says_why_not(name: str) -> None:
    assert sizes.is_small(RECORDS[name]) != (name in sizes.LARGER)


@pytest.mark.parametrize("name", RECORDS)
def test_it_took_no_longer_than_people_wait(name: str) -> None:
    counts = RECORDS[name]
    assert {key: counts[key] for key, most in sizes.LIMITS.items() if counts.get(key, 0) > most} == {}
