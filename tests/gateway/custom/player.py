"""Plays the steps of :mod:`tests.gateway.custom.cases` on a server, and brings its answers into a form to compare."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from typing import Any

import httpx

from tests.admission.webhook_server import Server
from tests.gateway.custom.cases import Step

TRIES = 200
_CHANGING = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "lastTransitionTime",
    "time",
    "continue",
    "caBundle",
)
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_VERSION = re.compile(r'(resourceVersion\\?":\\?")\d+')
_GENERATED = re.compile(r"Gen-[a-z0-9]{5}")
_VERSIONS = re.compile(r"spec\.versions: Invalid value: \[\{.*\}\]:", re.DOTALL)
_OWN_VERSIONS = re.compile(r"^Invalid value: \[\{.*\}\]:", re.DOTALL)
"""Kubernetes shows its internal structs there."""
_AGE = re.compile(r"\d+s")
"""A cell of a table."""
_PORT = re.compile(r"127\.0\.0\.1:\d+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


async def play(
    http: httpx.AsyncClient, steps: list[Step], *, pauses: bool, converter: Server | None = None
) -> list[dict[str, Any]]:
    """An answer for each step. ``converter``: what the webhook of :mod:`.conversions` is."""
    return [await _one(http, step if converter is None else _with(step, converter), pauses) for step in steps]


async def send(http: httpx.AsyncClient, step: Step, converter: Server) -> dict[str, Any]:
    return await _one(http, _with(step, converter), False)


def _with(step: Step, converter: Server) -> Step:
    """Asks the webhook where it is now."""

    def place(value: Any) -> Any:
        if isinstance(value, dict):
            found = {key: place(one) for key, one in value.items()}
            url = found.get("url") or ""
            return found | converter.client(url.partition("/")[2]) if url.startswith("CONVERTER/") else found
        return [place(one) for one in value] if isinstance(value, list) else value

    return dataclasses.replace(step, body=place(step.body))


async def _one(http: httpx.AsyncClient, step: Step, pauses: bool) -> dict[str, Any]:
    if step.pause_s and pauses:
        await asyncio.sleep(step.pause_s)
    body = step.body
    if step.fresh:
        found = (await http.get(step.path.removesuffix("/status"))).json()
        metadata = {**body["metadata"], "resourceVersion": found["metadata"]["resourceVersion"]}
        body = {**body, "metadata": metadata}
    for _ in range(TRIES):
        answer = await _send(http, step, body)
        if not step.until or _is_reached(answer, step.until):
            break
        await asyncio.sleep(0.1 if pauses else 0.02)
    return answer


def _is_reached(answer: dict[str, Any], until: str) -> bool:
    if until == "gone":
        return bool(answer["code"] == 404)
    conditions = ((answer["body"] or {}).get("status") or {}).get("conditions") or []
    return any(one["type"] == until and one["status"] == "True" for one in conditions)


async def _send(http: httpx.AsyncClient, step: Step, body: Any) -> dict[str, Any]:
    content = None if body is None else body if isinstance(body, str) else json.dumps(body)
    headers = {"Accept": step.accept, "User-Agent": "cases"} | (
        {"Content-Type": step.kind} if content is not None else {}
    )
    answer = await http.request(step.method, step.path, content=content, headers=headers)
    warnings = [one.partition(" - ")[2] for one in answer.headers.get_list("warning")]
    try:
        found = answer.json()
    except ValueError:
        found = _lines(answer.text)
    media = answer.headers.get("content-type", "").partition(";")[0]
    return {"code": answer.status_code, "media": media, "warnings": warnings, "body": plain(found)}


def _lines(text: str) -> Any:
    """The events of a watch."""
    try:
        return [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return text


def _entry(entry: dict[str, Any]) -> tuple[str, ...]:
    """Where managed fields stand whatever their times are."""
    fields = json.dumps(entry["fieldsV1"], sort_keys=True)
    return entry["manager"], entry["operation"], entry.get("subresource", ""), fields


def plain(value: Any) -> Any:
    """Without what differs from run to run."""
    if isinstance(value, dict) and value.get("kind") == "APIResourceList":
        # Kubernetes lists them in any order.
        value = {**value, "resources": sorted(value["resources"], key=lambda one: str(one["name"]))}
    if isinstance(value, dict) and len((value.get("details") or {}).get("causes") or ()) > 1:
        # Kubernetes finds some of them in any order.
        causes = sorted(value["details"]["causes"], key=lambda one: (str(one["field"]), str(one["message"])))
        message = str(value["message"]).partition(" is invalid: ")[0]
        value = {**value, "details": {**value["details"], "causes": causes}, "message": message}
    if isinstance(value, dict) and isinstance(value.get("managedFields"), list):
        entries = sorted(value["managedFields"], key=_entry)
        value = {**value, "managedFields": entries}
    if isinstance(value, dict) and value.get("code") == 415:
        value = {key: one for key, one in value.items() if key != "details"}
    if isinstance(value, dict):
        return {key: "…" if key in _CHANGING and one else plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, str):
        if _AGE.fullmatch(value):
            return "…"
        value = _PORT.sub("127.0.0.1:…", _VERSION.sub(r"\1…", value))
        value = _GENERATED.sub("Gen-…", value).replace("kube-apiserver-v1.36.3", "kube-apiserver")
        value = _VERSIONS.sub("spec.versions: Invalid value: …:", _TIME.sub("…", _UID.sub("…", value)))
        value = _OWN_VERSIONS.sub("Invalid value: …:", value)
    return value
