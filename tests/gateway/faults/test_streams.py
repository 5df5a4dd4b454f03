"""How a watch ends that a fault cuts."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import MutableMapping
from typing import Any

import pytest

from kemu.emulated.gateway.faults.requests import Asked
from kemu.emulated.gateway.faults.rules import Rule
from kemu.emulated.gateway.faults.streams import Stream
from kemu.emulated.gateway.requests import envelopes
from kemu.messages.k8s import meta_v1_pb2

ASKED = Asked("program/v1", "watch", "pods", "default", "")
EXPIRED = Rule("cut", "cutStreams", {"how": "expired"}, random.Random(1))


async def sent(*messages: MutableMapping[str, Any]) -> list[MutableMapping[str, Any]]:
    """What a client gets when these have come and the rule strikes."""
    found: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        found.append(message)

    stream = Stream(ASKED, "", send, asyncio.sleep)
    for message in messages:
        await stream.pass_on(message)
    await stream.finish(EXPIRED)
    return found


def start(kind: bytes) -> MutableMapping[str, Any]:
    return {"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]}


@pytest.mark.parametrize("begun", [True, False])
async def test_a_watch_that_expires_says_410_even_before_it_has_begun(begun: bool) -> None:
    head, error, end = await sent(*([start(b"application/json")] if begun else []))
    assert (head["type"], head["status"]) == ("http.response.start", 200)
    event = json.loads(error["body"])
    assert (event["type"], event["object"]["reason"], event["object"]["code"]) == ("ERROR", "Expired", 410)
    assert end["more_body"] is False


async def test_a_watch_in_protobuf_says_410_in_protobuf() -> None:
    _, error, _ = await sent(start(b"application/vnd.kubernetes.protobuf;stream=watch"))
    body = error["body"]
    assert len(body) == 4 + int.from_bytes(body[:4], "big")
    api_version, kind, message = envelopes.unpack(body[body.index(envelopes.MAGIC) :])
    assert (api_version, kind) == ("v1", "Status")
    status = meta_v1_pb2.Status.FromString(message)
    assert (status.reason, status.code) == ("Expired", 410)
