"""Watches of controllers that end early."""

from __future__ import annotations

import asyncio
from typing import cast

from kemu.lab.hunt.running.watches import Message, Stream, Teller

START: Message = {"type": "http.response.start", "status": 200, "headers": []}
LAST: Message = {"type": "http.response.body", "body": b"", "more_body": False}


def said(*before: Message) -> list[str]:
    """What the client hears, with what the gateway has sent before the watch is cut."""
    heard: list[str] = []

    async def send(message: Message) -> None:
        heard.append(str(message["type"]))

    async def run() -> None:
        stream = Stream(cast(Teller, None), "operator", "pods", send)
        for message in before:
            await stream.pass_on(message)
        await stream.end()

    asyncio.run(run())
    return heard


def test_a_watch_that_is_cut_ends_once() -> None:
    whole = ["http.response.start", "http.response.body"]
    assert said() == said(START) == said(START, LAST) == whole
