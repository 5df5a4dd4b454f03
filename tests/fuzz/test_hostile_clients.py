"""Clients that mean harm, at the port of a cell: it lives, its memory is bounded, and others are served.

``KEMU_FUZZ_SECONDS`` and ``KEMU_FUZZ_SEED`` make it longer and repeat it: ``scripts/nightly`` does.
"""

from __future__ import annotations

import os

import pytest

from tests.fuzz.fuzzer import Target
from tests.fuzz.hostile import Hostile

SECONDS = float(os.environ.get("KEMU_FUZZ_SECONDS", "6"))
SEED = int(os.environ.get("KEMU_FUZZ_SEED", "1"))


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("tls", [False, True], ids=["loopback", "TLS"])
async def test_no_client_hurts_a_cell(tls: bool) -> None:
    target = Target(tls=tls)
    try:
        hostile = Hostile(target, SEED, scale=min(1.0, SECONDS / 30))
        await hostile.run(SECONDS)
    finally:
        target.close()
    print(f"memory +{hostile.most_mib:.0f} MiB, slowest {hostile.slowest_s:.1f} s, {dict(hostile.counts)}")
    print(dict(hostile.seconds), hostile.memory_mib)
    assert hostile.counts["UNAUTHENTICATED"] > 400
    assert hostile.counts["never_reading"] > 0
