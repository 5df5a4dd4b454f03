"""Clients that mean harm, at the port of a cell: it lives, its memory is bounded, and others are served.

``KEMU_FUZZ_SECONDS`` and ``KEMU_FUZZ_SEED`` make it longer and repeat it: ``scripts/nightly`` does.
"""

from __future__ import annotations

import os

import pytest

from kemu.messages.v1 import api_pb2_grpc
from kemu.runtime.host import tokens
from tests.fuzz.fuzzer import Target
from tests.fuzz.hostile import Hostile

SECONDS = float(os.environ.get("KEMU_FUZZ_SECONDS", "3"))
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


@pytest.mark.slow
async def test_the_past_of_large_pods_takes_bounded_memory() -> None:
    """What API server and store remember of 75 pods of 1 MB that are gone. Each would leave 5 MiB."""
    target = Target()
    try:
        hostile = Hostile(target, SEED)
        start_mib = target.memory_mib()
        async with hostile.connected() as channel:
            stub = api_pb2_grpc.ApiStub(tokens.Signed(channel, tokens.DRIVER, target.token))
            for _ in range(15):
                await hostile.large_pods(stub, 0)
        grown_mib = target.memory_mib() - start_mib
    finally:
        target.close()
    assert hostile.counts["large pods"] == 75
    assert grown_mib < 250
