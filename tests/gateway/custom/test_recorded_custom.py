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


def _recorded(name: str) -> list[dict[str, Any]]:
    data = Path(__file__).with_name(f"{name}.json.gz").read_bytes()
    return player.plain(json.loads(gzip.decompress(data)))  # type: ignore[no-any-return]


REAL, WARNINGS = _recorded("recording"), _recorded("warnings")


@functools.cache
def _answers(kind: str) -> list[dict[str, Any]]:
    async def main(cluster: Cluster) -> list[dict[str, Any]]:
        steps = cases.STEPS if kind == "cases" else cases.WARNINGS
        return await player.play(cluster.http, steps, pauses=False)

    return gateway_cluster.run(main)


@pytest.mark.parametrize("number", range(len(cases.STEPS)))
def test_answers_are_those_of_a_real_server(number: int) -> None:
    step, real = cases.STEPS[number], REAL[number]
    assert _answers("cases")[number] == real, f"{step.method} {step.path} {json.dumps(step.body)[:300]}"


@pytest.mark.parametrize("number", range(len(cases.WARNINGS)))
def test_warnings_are_those_of_a_real_server(number: int) -> None:
    step, real = cases.WARNINGS[number], WARNINGS[number]
    assert _answers("warnings")[number] == real, f"{step.method} {step.path} {json.dumps(step.body)[:300]}"
