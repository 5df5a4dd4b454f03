"""What kemu answers to requests about custom kinds is what a real kube-apiserver answered (`recording.json.gz`, by
`record.py`)."""

from __future__ import annotations

import functools
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway import gateway_cluster
from tests.gateway.custom import cases, player
from tests.gateway.gateway_cluster import Cluster

REAL: list[dict[str, Any]] = player.plain(
    json.loads(gzip.decompress(Path(__file__).with_name("recording.json.gz").read_bytes()))
)


@functools.cache
def _answers() -> list[dict[str, Any]]:
    async def main(cluster: Cluster) -> list[dict[str, Any]]:
        return await player.play(cluster.http, cases.STEPS, pauses=False)

    return gateway_cluster.run(main)


@pytest.mark.parametrize("number", range(len(cases.STEPS)))
def test_answers_are_those_of_a_real_server(number: int) -> None:
    step, real = cases.STEPS[number], REAL[number]
    assert _answers()[number] == real, f"{step.method} {step.path} {json.dumps(step.body)[:300]}"
