"""Answers from the past: gets and lists as they were at a revision."""

from __future__ import annotations

import json
from urllib import parse

from kemu.emulated.gateway.asgi import Application, Message, Receive, Scope
from kemu.emulated.gateway.faults import refusals
from kemu.emulated.gateway.faults.requests import Asked
from kemu.emulated.gateway.requests import request_infos


async def answer(app: Application, scope: Scope, asked: Asked, revision: int) -> list[Message]:
    """What ``app`` answers to a get or a list, of the objects as they were at a revision."""
    query = request_infos.of(scope).query.first()
    path: str = scope["path"]
    if asked.verb == "get":
        path = path.rstrip("/")
        if "/" in asked.resource:
            path = path.rpartition("/")[0]
        path = path.rpartition("/")[0]
        query = {"fieldSelector": f"metadata.name={asked.name}"}
    query.pop("continue", None)
    query |= {"resourceVersion": str(revision), "resourceVersionMatch": "Exact"}
    headers = list(scope["headers"])
    if asked.verb == "get":
        headers = [(key, value) for key, value in headers if key.lower() not in (b"accept", b"accept-encoding")]
        headers.append((b"accept", b"application/json"))
    text = parse.urlencode(query).encode()
    changed = request_infos.changed(scope, path=path, raw_path=path.encode(), query_string=text, headers=headers)
    found_all = await whole(app, changed, _nothing)
    if asked.verb != "get" or found_all[0]["status"] != 200:
        return found_all
    found = json.loads(b"".join(message.get("body", b"") for message in found_all[1:]))
    if not found["items"]:
        status = refusals.not_found(asked)
    else:
        kind = found["kind"].removesuffix("List")
        status = {"kind": kind, "apiVersion": found["apiVersion"], **found["items"][0]}
    sent: list[Message] = []

    async def keep(message: Message) -> None:
        sent.append(message)

    await refusals.send(status, keep, 200 if found["items"] else 404)
    return sent


async def whole(app: Application, scope: Scope, receive: Receive) -> list[Message]:
    """The answer, all of it."""
    found: list[Message] = []

    async def keep(message: Message) -> None:
        found.append(message)

    await app(scope, receive, keep)
    return found


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}
