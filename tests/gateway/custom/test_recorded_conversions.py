"""What kemu answers about a custom kind whose versions a webhook converts is what a real kube-apiserver answered
(`conversions.json.gz`, by `record.py`)."""

from __future__ import annotations

import functools
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.admission import webhook_server
from tests.gateway import gateway_cluster
from tests.gateway.custom import conversions, converters, player
from tests.gateway.gateway_cluster import Cluster

REAL: list[dict[str, Any]] = player.plain(
    json.loads(gzip.decompress(Path(__file__).with_name("conversions.json.gz").read_bytes()))
)


_OWN_WORDS = re.compile(
    r"(storage is \(re\)initializing|Object 'Kind' is missing in "
    r"|failed: (?=.*(?:json parse error|0-length|unexpected EOF)))"
    r".*",
    re.DOTALL,
)
"""What follows depends on the time, on the webhook's spelling, or is in kemu's own words."""


def _told(answer: dict[str, Any]) -> dict[str, Any]:
    body = answer["body"]
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        body = {**body, "message": _OWN_WORDS.sub(r"\1…", body["message"])}
    if isinstance(body, list):
        last = body[-1]
        if last["type"] == "BOOKMARK" and "annotations" not in last["object"]["metadata"]:
            body = body[:-1]  # with which kemu ends short watches, too
    return {**answer, "body": body}


@functools.cache
def _answers() -> list[dict[str, Any]]:
    async def main(cluster: Cluster) -> list[dict[str, Any]]:
        with webhook_server.serving() as converter:
            converter.reviews.update(converters.RESPONSES)
            converter.more.update(converters.ADMISSION)
            return await player.play(cluster.http, conversions.STEPS, pauses=False, converter=converter)

    return gateway_cluster.run(main)


@pytest.mark.parametrize("number", range(len(conversions.STEPS)))
def test_answers_are_those_of_a_real_server(number: int) -> None:
    step, real = conversions.STEPS[number], REAL[number]
    assert _told(_answers()[number]) == _told(real), f"{step.method} {step.path} {json.dumps(step.body)[:300]}"
