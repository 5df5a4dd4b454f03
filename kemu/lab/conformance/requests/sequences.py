"""Sequences of requests over HTTP, answered by the gateway of an emulated cluster, as ``kemu up`` serves it.

A request may speak of what an earlier one was answered: ``{version:2}``, ``{continue:2}`` and ``{uid:2}`` stand for
the resource version, the token to continue and the UID in the answer to the third step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from kemu.emulated.gateway.app import Gateway
from kemu.emulated.gateway.authentication import authenticators, service_accounts
from kemu.emulated.gateway.settings import Settings
from kemu.emulated.objects import identities
from kemu.emulated.objects.identities import User
from kemu.lab.conformance import comparisons
from kemu.lab.conformance.control_planes import ControlPlane
from kemu.lab.conformance.requests import exchanges, results
from kemu.lab.conformance.requests.exchanges import Answer

Json = dict[str, Any]

NAMESPACES = ("here", "there")
"""They are there before the first request, empty."""
ISSUER = "https://kubernetes.default.svc"
"""As tests/realkube/clusters.py has it."""
AGENT = "recorder/1"
USERS = {
    "admin": User("admin", (identities.MASTERS, identities.AUTHENTICATED), "admin-id"),
    "viewer": User("viewer", ("", identities.AUTHENTICATED), "viewer-id"),
}
"""As tests/realkube/clusters.py has them, whose file gives every user a group, be its name empty. Their tokens are
their names with ``-token``."""
_PLACES = re.compile(r"\{(version|continue|uid):(\d+)\}")
_NAMES = {"version": "resourceVersion", "continue": "continue", "uid": "uid"}


def answer(case: Json) -> Json:
    plane = ControlPlane(stores_unsimulated=True)
    return {"steps": plane.run(lambda: _play(plane, case["steps"]))}


def agrees(expect: Json, answered: Json) -> list[str]:
    return comparisons.compare(expect, answered)


async def _play(plane: ControlPlane, steps: Sequence[Json]) -> list[Json]:
    await plane.runtime.begin()
    tokens = {f"{name}-token": user for name, user in USERS.items()}
    accounts = service_accounts.Tokens(issuer=ISSUER)
    settings = Settings(authenticator=authenticators.Authenticator(tokens, accounts=accounts), accounts=accounts)
    gateway = Gateway(plane.env.dial, plane.clock, settings)
    answers: list[Answer] = []
    try:
        for name in NAMESPACES:
            await exchanges.send(gateway, *parts_of(creation_of(name), ()))
        for step in steps:
            answers.append(await exchanges.send(gateway, *parts_of(step, answers)))
    finally:
        gateway.close()
    return [results.of_answer(step, one) for step, one in zip(steps, answers, strict=True)]


def creation_of(namespace: str) -> Json:
    """The request that makes a namespace."""
    body = json.dumps({"metadata": {"name": namespace}})
    return {
        "method": "POST",
        "path": "/api/v1/namespaces",
        "body": body,
        "headers": {"Content-Type": "application/json"},
    }


def parts_of(step: Json, answers: Sequence[Answer]) -> tuple[str, str, str, Mapping[str, str], bytes]:
    """Method, path, query, headers and body of a request. ``answers``: to those before."""

    def fill(text: str, quoted: bool = False) -> str:
        def found(match: re.Match[str]) -> str:
            value = results.token_of(answers[int(match[2])], _NAMES[match[1]])
            return quote(value, safe="") if quoted else value

        return _PLACES.sub(found, text)

    headers = {"User-Agent": AGENT, **step.get("headers", {})}
    if user := step.get("user", "admin"):
        headers["Authorization"] = f"Bearer {user}-token"
    body = fill(step.get("body", "")).encode() + b" " * step.get("spaces", 0)
    return step["method"], fill(step["path"]), fill(step.get("query", ""), quoted=True), headers, body
