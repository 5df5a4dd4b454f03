"""Patches of single documents, with directives in the right and in the wrong places."""

from __future__ import annotations

import copy
import random
from typing import Any

from tests.conformance.generators import writes

Json = dict[str, Any]
Draw = random.Random
FAMILIES = ("patches",)

_KINDS = {
    "Pod": "pods",
    "Deployment": "deployments",
    "Service": "services",
    "Node": "nodes",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "ServiceAccount": "serviceaccounts",
}
_KEYS = {
    "containers": "name", "volumes": "name", "env": "name", "ports": "containerPort", "volumeMounts": "mountPath",
    "hostAliases": "ip", "imagePullSecrets": "name", "topologySpreadConstraints": "topologyKey", "conditions": "type",
    "addresses": "type", "ownerReferences": "uid", "podIPs": "ip", "secrets": "name",
}  # fmt: skip
_SCALARS = ("finalizers", "podCIDRs", "args")


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    kind = draw.choice(tuple(_KINDS))
    original, patch = _document(draw, kind), _document(draw, kind)
    made: Json = {"id": f"patches-s{seed}-{number:05}", "family": "patches", "kind": kind, "original": original}
    choice = draw.random()
    if choice < 0.7:
        made["type"], made["patch"] = "strategic", _directed(draw, patch, original)
    elif choice < 0.8:
        made["type"], made["patch"] = "merge", _nulled(draw, patch)
    else:
        made["type"], made["patch"] = "json", _operations(draw, original)
    return made


def _document(draw: Draw, kind: str) -> Json:
    return writes.document(draw, _KINDS[kind])


def _directed(draw: Draw, patch: Any, original: Any) -> Any:
    """With directives here and there."""
    if isinstance(patch, list):
        return [_directed(draw, one, {}) for one in patch]
    if not isinstance(patch, dict):
        return patch
    before = original if isinstance(original, dict) else {}
    found: Json = {}
    for name, value in patch.items():
        old = before.get(name)
        chance = draw.random()
        if chance < 0.06:
            found[name] = None
            continue
        if chance < 0.1:
            continue
        if isinstance(value, list) and name in _KEYS:
            value = _directed_list(draw, name, value, old, found)
        elif isinstance(value, list) and name in _SCALARS:
            _directed_scalars(draw, name, value, old, found)
            if draw.random() < 0.3:
                continue
        elif isinstance(value, dict):
            value = _directed(draw, value, old)
            if draw.random() < 0.04:
                value["$patch"] = draw.choice(("replace", "delete", "merge", "else"))
            elif draw.random() < 0.05:
                value["$retainKeys"] = [key for key in value if not key.startswith("$") and draw.random() < 0.95]
        elif draw.random() < 0.01:
            value = draw.choice(("x", 1, True, [1], {"a": 1}))
        found[name] = value
    return found


def _directed_list(draw: Draw, name: str, value: list[Any], old: Any, found: Json) -> list[Any]:
    key = _KEYS[name]
    value = [_directed(draw, one, {}) if draw.random() < 0.8 else one for one in value]
    for one in value:
        chance = draw.random()
        if chance < 0.12:
            one["$patch"] = "delete"
        elif chance < 0.13:
            one["$patch"] = draw.choice(("merge", "x"))
    if draw.random() < 0.05:
        value.insert(draw.randint(0, len(value)), {"$patch": "replace"})
    if draw.random() < 0.4:
        known = [one.get(key) for one in (old or []) if isinstance(one, dict)]
        order = [one.get(key) for one in value if "$patch" not in one]
        extra = [one for one in known if one not in order and draw.random() < 0.7]
        if draw.random() < 0.2:
            draw.shuffle(order)
        for one in extra:
            order.insert(draw.randint(0, len(order)), one)
        found[f"$setElementOrder/{name}"] = [{key: one} for one in order if one is not None]
    return value


def _directed_scalars(draw: Draw, name: str, value: list[Any], old: Any, found: Json) -> None:
    if draw.random() < 0.3:
        found[f"$deleteFromPrimitiveList/{name}"] = [one for one in (old or value) if draw.random() < 0.6]
    if draw.random() < 0.3:
        order = list(dict.fromkeys([*value, *(old or [])]))
        if draw.random() < 0.3:
            draw.shuffle(order)
        found[f"$setElementOrder/{name}"] = order


def _nulled(draw: Draw, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    return {name: None if draw.random() < 0.15 else _nulled(draw, value) for name, value in patch.items()}


def _operations(draw: Draw, original: Json) -> Any:
    paths = list(_paths(original, ""))
    operations = []
    for _ in range(draw.randint(1, 4)):
        path = draw.choice(paths)
        if draw.random() < 0.15:
            path += draw.choice(("/x", "/0", "/-", "/-1", "/99", "/~1a"))
        what = draw.choice(("add", "remove", "replace", "test", "move", "copy", "add"))
        if draw.random() < 0.02:
            what = "else"
        one: Json = {"op": what, "path": path}
        if what in ("add", "replace", "test") and draw.random() < 0.97:
            one["value"] = _value(draw, original, path)
        if what in ("move", "copy") and draw.random() < 0.97:
            one["from"] = draw.choice(paths)
        operations.append(one)
    return operations


def _value(draw: Draw, original: Json, path: str) -> Any:
    if draw.random() < 0.5:
        found: Any = original
        for step in path.split("/")[1:]:
            try:
                found = found[int(step)] if isinstance(found, list) else found[step.replace("~1", "/")]
            except (LookupError, ValueError, TypeError):
                return "nothing"
        return copy.deepcopy(found)
    return draw.choice(("x", 1, None, {"a": "b"}, ["c"], True))


def _paths(value: Any, path: str) -> Any:
    if path:
        yield path
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _paths(one, f"{path}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _paths(one, f"{path}/{index}")
