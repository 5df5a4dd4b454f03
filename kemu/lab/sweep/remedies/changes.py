"""Remedies: files that change a scenario.

A file holds Kubernetes objects, parts of a scenario, or both. An object that the scenario has among its manifests is
changed as ``kubectl patch`` would (a strategic merge), any other is added. A document with ``spec`` of a scenario
changes what it names: mappings are merged, lists of things with names by their names, and all else is replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu import errors
from kemu.emulated.apiserver.registry.patching import patches
from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.plain import Json
from kemu.emulated.settings import documents
from kemu.emulated.settings.documents import Document
from kemu.lab.scenario.loading.objects import imports
from kemu.runtime.words import short

_NAMES = ("name", "id", "namePrefix")
_SCENARIO = "Scenario"


@dataclass(frozen=True)
class Remedy:
    """A change, and what it makes of the scenario."""

    name: str
    overrides: Mapping[str, Any]
    """Value by path below ``spec``."""
    changed: int = 0
    """Objects of the scenario."""
    added: int = 0
    details: tuple[str, ...] = ()
    """What it changes, one thing each: ``Deployment shop/web: web limits memory none → 1Gi``."""


def read(given: str, spec: Mapping[str, Any]) -> Remedy:
    """``given``: a file, or several with commas, which act together. ``spec``: that of the resolved scenario. Raises
    ScenarioError with all mistakes."""
    found: list[Document] = []
    problems: list[errors.Problem] = []
    for name in given.split(","):
        try:
            read_now = documents.read(Path(name))
        except errors.ScenarioError as error:
            problems += error.problems
            continue
        if not read_now:
            problems.append(errors.Problem(name, 1, 1, "", "holds no document"))
        found += read_now
    remedy = _made(given, found, spec, problems)
    if problems:
        raise errors.ScenarioError(problems)
    return remedy


def of_data(name: str, data: Json, spec: Mapping[str, Any]) -> Remedy:
    """The same from a document, or a list of them. Raises ScenarioError."""
    listed = data if isinstance(data, list) else [data]
    problems: list[errors.Problem] = []
    remedy = _made(name, [Document(name, each) for each in listed], spec, problems)
    if problems:
        raise errors.ScenarioError(problems)
    return remedy


def _made(name: str, found: Sequence[Document], spec: Mapping[str, Any], problems: list[errors.Problem]) -> Remedy:
    overrides: dict[str, Any] = {}
    manifests = [*spec.get("manifests", ())]
    places = {imports.name_of(each): index for index, each in enumerate(manifests)}
    changed = added = 0
    details: list[str] = []
    for document in found:
        data = document.data
        if not isinstance(data, dict):
            problems.append(document.problem((), "is neither an object nor a part of a scenario"))
        elif _is_part(data):
            part = data.get("spec")
            if not isinstance(part, dict) or not part:
                problems.append(document.problem((), "changes nothing: it has no spec"))
                continue
            if "manifests" in part:
                text = "objects stand in the file themselves, beside the scenario's part"
                problems.append(document.problem(("spec", "manifests"), text, key=True))
            for key, value in part.items():
                before = overrides.get(key, spec.get(key))
                overrides[key] = _merged(before, value)
                details += _added(key, before, overrides[key]) or _differences(before, overrides[key], key)
        else:
            items = data.get("items") if str(data.get("kind")).endswith("List") else None
            for index, each in enumerate(items if isinstance(items, list) else [data]):
                path = () if items is None else ("items", index)
                place = places.get(imports.name_of(each))
                if place is None:
                    manifests.append(each)
                    added += 1
                    details.append(f"{_title(each)}: added")
                    continue
                try:
                    patched = _patched(manifests[place], each)
                    was = convert.to_manifest(convert.from_manifest(manifests[place]))
                    details += [f"{_title(each)}: {text}" for text in _differences(was, patched)]
                    manifests[place] = patched
                    changed += 1
                except (errors.ApiError, convert.ConversionError) as error:
                    problems.append(document.problem(path, f"does not fit the object that it changes: {error}"))
    if changed or added:
        overrides["manifests"] = manifests
    return Remedy(name, overrides, changed, added, tuple(details))


def _title(data: Mapping[str, Any]) -> str:
    metadata = data.get("metadata") or {}
    names = [str(metadata[part]) for part in ("namespace", "name") if metadata.get(part)]
    return f"{data.get('kind')} {short('/'.join(names))}"


def _added(key: str, before: Json, after: Json) -> list[str]:
    """Things that come to a list of what happens: ``events: patch Deployment shop/web at 5m``."""
    old = before if isinstance(before, list) else []
    if not isinstance(after, list) or after[: len(old)] != old or not all(isinstance(one, dict) for one in after):
        return []
    found = []
    for one in after[len(old) :]:
        at = f" at {one['at']}" if "at" in one else ""
        what = next((name for name in one if name != "at"), "")
        whom = one[what] if what else ""
        if isinstance(whom, dict):
            name = "/".join(str(whom[part]) for part in ("namespace", "name") if part in whom)
            whom = f"{whom.get('kind', '')} {name}".strip() or _said(whom)
        found.append(f"{key}: {what} {whom if isinstance(whom, str) else _said(whom)}{at}")
    return found


_LONG_VALUE = 40
_OF_CONTAINER = re.compile(r"^(?:initC|c)ontainers\.([^.]+)\.(?:resources\.)?(requests|limits)?\.?")
_UNSAID = ("spec.template.spec.", "spec.")


def _differences(before: Json, after: Json, path: str = "") -> list[str]:
    """``path old → new`` for each value that differs; things with names go by them."""
    if before == after:
        return []
    if isinstance(before, list) and isinstance(after, list) and all(_named(one) for one in (*before, *after)):
        before, after = ({_named(one).partition(" ")[2]: one for one in each} for each in (before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            text
            for key in dict.fromkeys((*before, *after))
            for text in _differences(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
        ]
    if isinstance(after, dict) and before is None and after:
        return [text for key, value in after.items() for text in _differences(None, value, f"{path}.{key}")]
    prefix = next((each for each in _UNSAID if path.startswith(each)), "")
    name = _OF_CONTAINER.sub(r"\1 \2 ", path.removeprefix(prefix)).strip()
    return [f"{name} {_said(before)} → {_said(after)}"]


def _said(value: Json) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONG_VALUE else f"{text[: _LONG_VALUE - 1]}…"


def _is_part(data: Mapping[str, Any]) -> bool:
    return data.get("kind") == _SCENARIO or ("kind" not in data and "spec" in data)


def _patched(data: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Raises ApiError."""
    message = convert.from_manifest(data)
    resource = resources.of(message)
    kind = patches.STRATEGIC if str(patch.get("kind")) in resources.BY_KIND else patches.MERGE
    patches.apply(resource, message, dict(patch), kind)
    return convert.to_manifest(message)


def _merged(old: Json, new: Json) -> Json:
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}
    if isinstance(old, list) and isinstance(new, list) and new and all(_named(each) for each in (*old, *new)):
        places = {_named(each): index for index, each in enumerate(old)}
        found = [*old]
        for each in new:
            place = places.get(_named(each))
            if place is None:
                found.append(each)
            else:
                found[place] = _merged(found[place], each)
        return found
    return new


def _named(item: Json) -> str:
    return next((f"{key} {item[key]}" for key in _NAMES if key in item), "") if isinstance(item, dict) else ""
