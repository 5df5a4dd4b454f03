"""``metadata.managedFields`` of an object and the managers that it tells of (``managedfields/internal``).

The entries are plain JSON, as :mod:`kemu.emulated.objects.conversion` reads and writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kemu.emulated.objects import times
from kemu.emulated.objects.managed_fields import fieldsets
from kemu.emulated.objects.managed_fields.updaters import Identity, Managed, Managers

APPLY, UPDATE = "Apply", "Update"
FIELDS_V1 = "FieldsV1"

Times = dict[Identity, str]
"""When managers last wrote: RFC 3339."""
Entry = dict[str, Any]


def decode(entries: Sequence[Mapping[str, Any]]) -> tuple[Managers, Times]:
    """Raises ValueError with the text of ``DecodeManagedFields``."""
    managers: Managers = {}
    found: Times = {}
    for position, entry in enumerate(entries):
        operation = entry.get("operation", "")
        if operation not in (APPLY, UPDATE):
            raise ValueError("operation must be `Apply` or `Update`")
        version = entry.get("apiVersion", "")
        if not version:
            raise ValueError("apiVersion must not be empty")
        fields_type = entry.get("fieldsType", "")
        if not fields_type:
            raise ValueError(f"missing fieldsType in managed fields entry {position}")
        if fields_type != FIELDS_V1:
            raise ValueError(f'invalid fieldsType "{fields_type}" in managed fields entry {position}')
        applied = operation == APPLY
        who = Identity(entry.get("manager", ""), operation, "" if applied else version, entry.get("subresource", ""))
        try:
            fields = fieldsets.from_json(entry.get("fieldsV1") or {})
        except ValueError as error:
            raise ValueError(f"error decoding versioned set: {error}") from None
        managers[who] = Managed(fields, version, applied)
        when = entry.get("time")
        if when:
            found[who] = when
        else:
            found.pop(who, None)
    return managers, found


def encode(managers: Managers, when: Times) -> list[Entry]:
    """In the order of Kubernetes: those that apply first, then by time and name (``sortEncodedManagedFields``)."""
    entries = [_entry(who, one, when.get(who)) for who, one in managers.items()]
    entries.sort(key=_rank)
    return entries


def _entry(who: Identity, one: Managed, when: str | None) -> Entry:
    entry: Entry = {}
    if who.manager:
        entry["manager"] = who.manager
    entry["operation"] = APPLY if one.applied else who.operation
    entry["apiVersion"] = one.api_version
    if when:
        entry["time"] = when
    entry["fieldsType"] = FIELDS_V1
    entry["fieldsV1"] = fieldsets.to_json(one.fields)
    if who.subresource:
        entry["subresource"] = who.subresource
    return entry


def _rank(entry: Entry) -> tuple[str, int, bytes, bytes, bytes]:
    return (
        entry["operation"],
        seconds(entry.get("time")),
        entry.get("manager", "").encode(),
        entry["apiVersion"].encode(),
        entry.get("subresource", "").encode(),
    )


def seconds(when: str | None) -> int:
    return times.parse_time(when) // 1_000_000_000 if when else 0


def identifier(who: Identity) -> str:
    """The name that ``BuildManagerIdentifier`` gives to a manager, by which it sorts them."""
    found = {
        "manager": who.manager,
        "operation": who.operation,
        "apiVersion": who.api_version,
        "subresource": who.subresource,
    }
    return json.dumps({name: text for name, text in found.items() if text}, separators=(",", ":"), ensure_ascii=False)


def describe(who: Identity) -> str:
    """As messages to people name a manager (``printManager``)."""
    name = json.dumps(who.manager, ensure_ascii=False)
    if who.subresource:
        name = f'{name} with subresource "{who.subresource}"'
    return f"{name} using {who.api_version}" if who.operation == UPDATE else name
