"""Objects of nearly every kind with values, right and wrong, in fields that the Go types have."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from kemu.emulated.objects.managed_fields import schemas
from kemu.emulated.objects.managed_fields.schemas import LIST, MAP, STRUCT, Field, Type
from tests.conformance.generators import metadata

Json = dict[str, Any]
Draw = random.Random
FAMILIES = ("fields",)

_OFTEN = ("pods", "pods", "nodes", "deployments", "statefulsets", "daemonsets", "jobs", "jobs", "cronjobs", "services")
_APART = ("apiVersion", "kind", "metadata", "status")
_LEFT_OUT = (
    *("schedulingGroup", "privileged", "hostProcess"),  # gates and flags of the recorded server
    *("clusterIP", "nodePort", "healthCheckNodePort", "manualSelector"),  # which a server chooses, or does by chance
)
_SOURCES = ("containerResource", "external", "object", "pods", "resource")
"""Of a metric, which has one: Go tells of several in any order."""
_DEPTH = 3
_TEXTS = ("", "a", "b", "Bad_", "a.b", "a/b", "example.com/a", "1", "-1", "50%", "/a", "../a", "None", "a" * 64)
_ADDRESSES = (
    "10.0.0.1", "10.0.0.0/24", "10.0.0.1/24", "::1", "fd00::/64", "FD00::1", "::ffff:10.0.0.1", "127.0.0.1",
    "010.0.0.1", "a", "",
)  # fmt: skip
_TEXTS_OF = {
    "apiGroup": ("", "apps", "Bad_", "example.com"),
    "apiVersion": ("v1", "apps/v1", "a/b/c", ""),
    "clusterIP": ("None", "10.0.0.9", "a", ""),
    "controllerKind": ("a",),
    "effect": ("NoSchedule", "NoExecute", "PreferNoSchedule", "a", ""),
    "fieldPath": ("metadata.name", "metadata.labels['a']", "spec.nodeName", "status.podIP", "a", ""),
    "image": ("i", " i", ""),
    "key": ("a", "a/b", "Bad_/", "kubernetes.io/hostname", "beta.kubernetes.io/os", ""),
    "mountPath": ("/a", "/b", "a:b", ""),
    "shareID": ("0b9b4a4c-8a1d-4a3e-9c46-4a5f2a3d9d10", "0B9b4a4c-8a1d-4a3e-9c46-4a5f2a3d9d10", "a", ""),
    "path": ("/a", "a", "..", "a/../b", ""),
    "mountPropagation": ("None", "HostToContainer", "Bidirectional", "a"),
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "a", ""),
    "port": ("http", "a" * 16, "-", "8080"),
    "completedIndexes": ("0", "0,2-3", "3-1", "1,1", "0-1-2", "9", "a", ""),
    "failedIndexes": ("1", "0,2-3", "4", "a", ""),
    "schedule": ("* * * * *", "@hourly", "TZ=UTC * * * * *", "* *", ""),
    "timeZone": ("UTC", "Europe/Berlin", "Local", "a", ""),
    "topologyKey": ("kubernetes.io/hostname", "a", "beta.kubernetes.io/arch", "Bad_/", ""),
    "value": ("", "a", "b", "1", "-a"),
    "values": ("", "a", "b", "1", "-a"),
}
_ADDRESS_FIELDS = {
    "addresses", "cidr", "clusterIPs", "except", "externalIPs", "ip", "loadBalancerIP", "loadBalancerSourceRanges",
    "nameservers", "podCIDR", "podCIDRs",
}  # fmt: skip
_ALONE = ("allocatedResources", "allocatedResourceStatuses")
"""Maps of which most keys are wrong."""
_OF_LIMITS = ("default", "defaultRequest", "max", "min", "maxLimitRequestRatio")
_RESOURCES = ("cpu", "memory", "pods", "storage", "ephemeral-storage", "hugepages-2Mi", "example.com/a", "a", "Bad_/")
_KEYS = ("a", "b", "Bad_", "-", "a/b", "beta.kubernetes.io/arch")
_QUANTITIES = ("0", "1", "2", "-1", "100m", "1500m", "0.5m", "1Gi", "3Mi")
_NUMBERS = (-1, 0, 1, 1, 2, 3, 80, 100, 101, 65535, 65536, 2**31 - 1)


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    plural = draw.choice((*metadata.OBJECTS, *_OFTEN))
    steps = [_step(draw, plural, "create", "x")]
    if draw.random() < 0.8:
        steps = [metadata.wrapped("create", plain(plural))]
    for _ in range(draw.randint(4, 6)):
        steps.append(_step(draw, plural, *draw.choice((("create", "y"), ("update", "x")))))
    return {"id": f"fields-s{seed}-{number:05}", "family": family, "resource": plural, "steps": steps}


def plain(plural: str) -> Json:
    body = metadata.plain(plural)
    if plural == "jobs":
        # Without random labels.
        body["spec"] |= {"manualSelector": True, "selector": {"matchLabels": {"app": "a"}}}
        body["spec"]["template"]["metadata"] = {"labels": {"app": "a"}}
    return body


def _step(draw: Draw, plural: str, verb: str, name: str) -> Json:
    body = plain(plural)
    body["metadata"]["name"] = name
    kind = schemas.find_type(schemas.find(body["apiVersion"], body["kind"]) or "")
    assert kind is not None
    for _ in range(draw.choice((1, 1, 2, 3))):
        change(draw, kind, body)
    # An object of another name would not be cleared away after the case.
    return metadata.wrapped(verb, body, **({"dryRun": True} if name == "y" else {}))


def change(draw: Draw, kind: Type, body: Json, apart: Sequence[str] = _APART) -> None:
    """One field of one of the structs in it, however deep. ``apart``: of the outermost, which stay."""
    structs = [(kind, body)]
    for one, value in structs:
        assert one.fields is not None
        for name, field in one.fields.items():
            if name in value and not (value is body and name in apart):
                structs += _structs_in(schemas.resolve(field.type), value[name])
    # Those that stand deep have many fields of little weight.
    of, place = draw.choice(structs[: 1 + draw.randrange(len(structs))])
    assert of.fields is not None
    stay = (*_LEFT_OUT, *(apart if place is body else ()), *(_SOURCES if _SOURCES[0] in of.fields else ()))
    names = [name for name in of.fields if name not in stay]
    if not names:
        return
    there = [name for name in names if name in place]
    if there and draw.random() < 0.35:
        name = draw.choice(there)
        kind_of = draw.random()
        if kind_of < 0.25:
            del place[name]
            return
        if kind_of < 0.5 and isinstance(place[name], list):
            place[name] = place[name] * 2
            return
    else:
        name = draw.choice(names)
    place[name] = _value(draw, name, of.fields[name], _DEPTH)


def _structs_in(kind: Type, value: Any) -> list[tuple[Type, Json]]:
    if kind.kind == STRUCT and kind.fields and isinstance(value, dict):
        return [(kind, value)]
    if kind.kind == LIST and isinstance(value, list):
        element = schemas.resolve(kind.element)
        return [found for one in value for found in _structs_in(element, one)]
    return []


def _value(draw: Draw, name: str, field: Field, depth: int) -> Any:
    return _of_type(draw, name, field, schemas.resolve(field.type), field.go.lstrip("[]*"), depth)


def _of_type(draw: Draw, name: str, field: Field, kind: Type, go: str, depth: int) -> Any:
    if kind.kind == STRUCT:
        return struct(draw, kind, depth - 1)
    if kind.kind == LIST:
        element = schemas.resolve(kind.element)
        count = draw.choice((1, 1, 1, 2))  # Messages hold no empty lists.
        return [_of_type(draw, name, field, element, go, depth) for _ in range(count)]
    if "IntOrString" in go:
        return draw.choice((*_NUMBERS, "50%", "101%", "a", "http", ""))
    if kind.kind == MAP:
        return _entries(draw, name, field, schemas.resolve(kind.element), depth)
    if kind.kind != schemas.SCALAR:
        return {}
    return _scalar(draw, name, field, kind, go)


def struct(draw: Draw, kind: Type, depth: int) -> Json:
    assert kind.fields is not None
    value = {}
    source = draw.choice(_SOURCES) if _SOURCES[0] in kind.fields else ""
    for name, field in kind.fields.items():
        if source and name in _SOURCES and name != source:
            continue
        if name not in _LEFT_OUT and draw.random() < (0.9 if field.is_required else 0.25 if depth > 0 else 0.0):
            value[name] = _value(draw, name, field, depth)
    return value


def _entries(draw: Draw, name: str, field: Field, element: Type, depth: int) -> Json:
    """One entry at most may be wrong: Go tells those of a map in any order."""
    found: Json = {}
    if "Quantity" in str(field.type):
        if draw.random() < 0.3 and name not in _ALONE:
            found["cpu"] = "1"
        # Those of one limit are told together.
        found["cpu" if name in _OF_LIMITS else draw.choice(_RESOURCES)] = draw.choice(_QUANTITIES)
        return found
    if element.scalar == "string" and draw.random() < 0.3 and name not in _ALONE:
        found["c"] = "1"
    go = field.go.rpartition("]")[2]
    found[draw.choice(_KEYS)] = _of_type(draw, name, field, element, go, depth)
    return found


def _scalar(draw: Draw, name: str, field: Field, kind: Type, go: str) -> Any:
    if "Quantity" in go:
        return draw.choice(_QUANTITIES)
    if "Time" in go:
        return draw.choice(("2020-01-02T03:04:05Z", None))
    if "uint8" in go:
        return "YQ=="
    if kind.scalar == "numeric":
        return draw.choice(_NUMBERS)
    if kind.scalar == "boolean":
        return draw.random() < 0.5
    if field.values and draw.random() < 0.85:
        return draw.choice(field.values)
    if name in _ADDRESS_FIELDS:
        return draw.choice(_ADDRESSES)
    return draw.choice(_TEXTS_OF.get(name, _TEXTS))
