"""A dump taken from a cluster that stands: lists alone, page by page, of each kind that is served and matters here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from kemu.emulated.bridge import connections
from kemu.errors import KemuError
from kemu.lab.incidents import dumps, fates
from kemu.lab.incidents.dumps import Dump

_PAGE = "500"
_SKIPPED = {"Secret"}
"""Never read: nothing in kemu needs what they hold."""
_TWICE = {("events.k8s.io", "Event"), ("extensions", "Ingress")}
"""Served by another group as well."""
_FORBIDDEN, _OK = 403, 200


def read(kubeconfig: Path, context: str, found: Dump) -> list[str]:
    """Add the objects of a cluster to a dump. Returns what is told: kinds that may not be listed. Raises KemuError
    where the cluster cannot be reached."""
    return asyncio.run(_read(connections.Settings(kubeconfig=str(kubeconfig), context=context), found))


async def _read(settings: connections.Settings, found: Dump) -> list[str]:
    connection = connections.Connection(settings)
    await connection.open()
    told = []
    try:
        async for path, kind in _kinds(connection):
            why = await _list(connection, path, found)
            if why:
                told.append(f"{kind}: {why}")
    except connections.Unreachable as error:
        raise KemuError(f"{connection.server}: cannot be reached: {error}") from None
    finally:
        await connection.close()
    return told


async def _kinds(connection: connections.Connection) -> AsyncIterator[tuple[str, str]]:
    """Path and kind of each that can be listed, in the preferred version of its group."""
    versions = ["/api/v1"]
    groups = await _get(connection, "/apis")
    versions += [f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups.get("groups", ())]
    for prefix in versions:
        try:
            served = await _get(connection, prefix)
        except KemuError:
            continue  # An aggregated API server that does not answer.
        group = prefix.split("/")[2] if prefix.startswith("/apis/") else ""
        for one in served.get("resources", ()):
            name, kind = one["name"], one["kind"]
            if "/" in name or "list" not in one["verbs"] or kind in _SKIPPED or (group, kind) in _TWICE:
                continue
            if kind in fates.REMADE or kind == "NodeMetrics":
                continue
            yield f"{prefix}/{name}", kind


async def _get(connection: connections.Connection, path: str) -> dict[str, Any]:
    answer = await connection.read_json(path)
    if answer.code != _OK:
        raise KemuError(f"{connection.server}{path}: answers {answer.code}: {_message(answer.body)}")
    found: dict[str, Any] = json.loads(answer.body)
    return found


async def _list(connection: connections.Connection, path: str, found: Dump) -> str:
    """Why it could not be listed; "": it was."""
    query = {"limit": _PAGE}
    while True:
        answer = await connection.read_json(path, query)
        if answer.code != _OK:
            return (
                "may not be listed" if answer.code == _FORBIDDEN else f"answers {answer.code}: {_message(answer.body)}"
            )
        body = json.loads(answer.body)
        dumps.add(found, body)
        following = (body.get("metadata") or {}).get("continue")
        if not following:
            return ""
        query = {"limit": _PAGE, "continue": following}


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body).get("message", ""))[:200]
    except (ValueError, AttributeError):
        return body[:200].decode(errors="replace")
