"""Whatever comes in, every gRPC service stays up, answers with a clear status, and keeps its memory bounded.

``KEMU_FUZZ_SECONDS`` and ``KEMU_FUZZ_SEED`` make it longer and repeat it: ``scripts/nightly`` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.fuzz.fuzzer import Fuzzer, Target

SECONDS = float(os.environ.get("KEMU_FUZZ_SECONDS", "5"))
LEAST = 40
"""Attacks, however slow the machine is."""
SEED = int(os.environ.get("KEMU_FUZZ_SEED", "1"))


@pytest.fixture
def target() -> Iterator[Target]:
    target = Target()
    yield target
    target.close()


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 300)
async def test_no_input_hurts_any_service(target: Target) -> None:
    fuzzer = Fuzzer(target, SEED)
    await fuzzer.run(SECONDS, LEAST)
    assert fuzzer.counts["OK"] > 20
    assert fuzzer.counts["INVALID_ARGUMENT"] > 20
