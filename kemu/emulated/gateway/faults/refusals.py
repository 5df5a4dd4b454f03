"""Answers that the gateway's faults give in the place of the cluster, with the texts of kube-apiserver."""

from __future__ import annotations

import json
from typing import Any

from kemu.emulated.gateway.asgi import Send
from kemu.emulated.gateway.faults.requests import Asked

_REASONS = {
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def status(code: int, asked: Asked, retry_after_s: float = 0.0) -> dict[str, Any]:
    """A ``Status``."""
    resource = asked.resource.partition("/")[0]
    details: dict[str, Any] = {}
    if asked.name:
        details["name"] = asked.name
    if resource:
        details["kind"] = resource
    if asked.group:
        details["group"] = asked.group
    if retry_after_s:
        details["retryAfterSeconds"] = max(1, round(retry_after_s))
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": _message(code, asked),
        "reason": _REASONS[code],
        **({"details": details} if details else {}),
        "code": code,
    }


def not_found(asked: Asked) -> dict[str, Any]:
    resource = asked.resource.partition("/")[0]
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'{asked.qualified} "{asked.name}" not found',
        "reason": "NotFound",
        "details": {"name": asked.name, **({"group": asked.group} if asked.group else {}), "kind": resource},
        "code": 404,
    }


def _message(code: int, asked: Asked) -> str:
    if code == 409:
        # ``NewConflict`` around ``OptimisticLockErrorMsg``.
        return (
            f'Operation cannot be fulfilled on {asked.qualified} "{asked.name}": the object has been '
            "modified; please apply your changes to the latest version and try again"
        )
    if code == 410:
        if asked.verb == "list":
            return "The provided continue parameter is too old to display a consistent list result."
        return "The resourceVersion for the provided watch is too old."
    if code == 429:
        return "Too many requests, please try again later."
    if code == 500:
        return "Internal error occurred: rpc error: code = Unknown desc = kemu chaos"
    if code == 503:
        return "the server is currently unable to handle the request"
    return "Timeout: request did not complete within the allotted timeout"


async def send(found: dict[str, Any], send: Send, code: int = 0) -> None:
    """An object as the whole answer. ``code``: of HTTP; 0: that of a ``Status``."""
    body = json.dumps(found, separators=(",", ":")).encode() + b"\n"
    headers = [
        (b"cache-control", b"no-cache, private"),
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
    ]
    retry_after = found.get("details", {}).get("retryAfterSeconds")
    if retry_after:
        headers.append((b"retry-after", b"%d" % retry_after))
    await send({"type": "http.response.start", "status": code or found["code"], "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
