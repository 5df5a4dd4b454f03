"""What of two answers has to be alike: status, reason, details, Content-Type, keys, columns of Tables."""

from __future__ import annotations

import re
from typing import Any

from tests.gateway.replays import wires
from tests.gateway.replays.wires import Document

#: Neither value nor presence counts: what differs from run to run, and what only some writers cause.
IGNORED = {"managedFields", "uid", "resourceVersion", "creationTimestamp", "selfLink", "remainingItemCount", "continue"}
_NUMBERED = re.compile(r"\[\d+\]")


def keys(value: Any, path: str = "") -> set[str]:
    """Paths of all keys; elements of lists are not told apart."""
    found: set[str] = set()
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in IGNORED or (key == "f:" or key.startswith("f:")):
                continue
            found.add(f"{path}.{key}")
            found |= keys(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            found |= keys(inner, f"{path}[]")
    return found


def media(content_type: str) -> str:
    return content_type.replace(" ", "").replace(";charset=utf-8", "")


def of_documents(expected: Document, found: Document, partial: bool = False) -> list[str]:
    """Differences between two bodies. ``partial``: of ``expected``, only some elements of lists are known here."""
    if expected.value is None and not expected.prefix:
        if expected.is_protobuf and expected.kind != found.kind:
            return [f"kind {expected.kind!r}, here {found.kind!r}"]
        return []
    if expected.prefix:
        known = wires.beginning(expected.prefix)
        for name in ("items", "rows"):
            if isinstance(known, dict) and name in known:
                # The last element may lack what it had; and what the others have was brought about.
                known[name] = known[name][:-1]
        lacking = sorted(keys(known) - keys(found.value))
        return [f"keys: -{key}" for key in lacking]
    if not isinstance(expected.value, dict):
        return [] if type(expected.value) is type(found.value) else [f"body {str(found.value)[:60]!r}"]
    if not isinstance(found.value, dict):
        return [f"body {str(found.value)[:60]!r}"]
    if expected.value.get("kind") == "Table" == found.value.get("kind"):
        return of_tables(expected.value, found.value)
    wanted, have = keys(expected.value), keys(found.value)
    if expected.is_protobuf:
        # Empty messages are written or not, as each writer likes: only what holds something counts.
        wanted, have = _filled(expected.value), _filled(found.value)
    differences = [f"keys: -{key}" for key in sorted(wanted - have)] + [
        f"keys: +{key}" for key in sorted(have - wanted)
    ]
    if expected.value.get("kind") == "Status":
        differences += of_status(expected.value, found.value)
    return differences


def of_status(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    differences = [
        f"{key} {expected.get(key)!r}, here {found.get(key)!r}"
        for key in ("status", "reason", "code")
        if (expected.get(key) or None) != (found.get(key) or None)
    ]
    wanted, have = dict(expected.get("details") or {}), dict(found.get("details") or {})
    differences += [
        f"details.{key} {wanted.get(key)!r}, here {have.get(key)!r}"
        for key in ("name", "group", "kind", "retryAfterSeconds")
        if (wanted.get(key) or None) != (have.get(key) or None)
    ]
    causes = [(cause.get("reason"), cause.get("field") or None) for cause in wanted.get("causes") or []]
    ours = [(cause.get("reason"), cause.get("field")) for cause in have.get("causes") or []]
    if causes != ours:
        differences.append(f"causes {causes}, here {ours}")
    return differences


def of_tables(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    differences = []
    wanted, have = (
        [
            (column["name"], column["type"], column["format"], column["priority"])
            for column in table.get("columnDefinitions") or []
        ]
        for table in (expected, found)
    )
    if wanted != have:
        differences.append(f"columns {wanted}, here {have}")
    if bool(expected.get("rows")) != bool(found.get("rows")):
        differences.append(f"{len(expected.get('rows') or [])} rows, here {len(found.get('rows') or [])}")
    elif expected.get("rows"):
        one, other = expected["rows"][0], found["rows"][0]
        if len(one["cells"]) != len(other["cells"]):
            differences.append(f"{len(one['cells'])} cells, here {len(other['cells'])}")
        if [type(cell) for cell in one["cells"]] != [type(cell) for cell in other["cells"]]:
            differences.append(f"cells {one['cells']}, here {other['cells']}")
        top = [sorted(row.get("object") or {}) for row in (one, other)]
        if top[0] != top[1]:
            differences.append(f"row objects {top[0]}, here {top[1]}")
    return differences


def outline(document: Document) -> Document:
    """Only the top of a document, of which perhaps only the beginning is known."""
    if isinstance(document.value, dict) and "b64" not in document.value:
        return Document(dict.fromkeys(document.value))
    return Document()


def message(document: Document) -> str:
    """Of a Status."""
    value = document.value
    return str(value.get("message", "")) if isinstance(value, dict) and value.get("kind") == "Status" else ""


def _filled(value: Any, path: str = "") -> set[str]:
    found: set[str] = set()
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in IGNORED or not inner:
                continue
            below = _filled(inner, f"{path}.{key}")
            if isinstance(inner, (dict, list)) and not below:
                continue
            found |= {f"{path}.{key}"} | below
    elif isinstance(value, list):
        for inner in value:
            found |= _filled(inner, f"{path}[]") or {f"{path}[]"}
    return found
