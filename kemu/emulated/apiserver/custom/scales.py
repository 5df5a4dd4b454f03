"""The Scale of an object of a custom kind, at the paths that its definition names (``ScaleREST`` of
``registry/customresource``)."""

from __future__ import annotations

from typing import Any

from kemu.emulated.apiserver import errors
from kemu.emulated.apiserver.custom.served import Served
from kemu.emulated.objects.conversion import custom_objects
from kemu.emulated.objects.plain import Json
from kemu.errors import BadRequest, Cause, InternalError
from kemu.messages.k8s import autoscaling_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject

UNSET = -(1 << 31)
"""The replicas of an object that states none, for who writes a Scale."""


def get(row: Served, wire: bytes) -> bytes:
    """The Scale of an object. Raises :class:`kemu.errors.InternalError` where it states no replicas."""
    obj = CustomObject.FromString(wire)
    scale, is_set = of(row, obj, obj.metadata.resourceVersion)
    if not is_set:
        path = row.version.subresources.scale.specReplicasPath
        why = f'the spec replicas field "{path}" does not exist'
        raise InternalError(f"Internal error occurred: {why}", causes=[Cause("", "", why)])
    data: bytes = scale.SerializeToString(deterministic=True)
    return data


def of(row: Served, obj: CustomObject, version: str) -> tuple[autoscaling_v1_pb2.Scale, bool]:
    """And whether the object states its replicas. ``version``: the object's resource version."""
    paths, fields = row.version.subresources.scale, custom_objects.content(obj)
    scale = autoscaling_v1_pb2.Scale()
    metadata, found = scale.metadata, obj.metadata
    metadata.name, metadata.namespace, metadata.uid = found.name, found.namespace, found.uid
    metadata.creationTimestamp.CopyFrom(found.creationTimestamp)
    if version:
        metadata.resourceVersion = version
    replicas = _at(fields, paths.specReplicasPath)
    scale.spec.replicas = replicas if type(replicas) is int else 0
    status = _at(fields, paths.statusReplicasPath)
    scale.status.replicas = status if type(status) is int else 0
    if paths.labelSelectorPath:
        selector = _at(fields, paths.labelSelectorPath)
        scale.status.selector = selector if isinstance(selector, str) else ""
    return scale, type(replicas) is int


def change(row: Served, obj: CustomObject, revision: int, wanted: autoscaling_v1_pb2.Scale) -> None:
    """Give ``obj`` the replicas of ``wanted``. Raises :class:`kemu.errors.ApiError` where it does not fit."""
    path = row.version.subresources.scale.specReplicasPath
    replicas = wanted.spec.replicas
    if replicas == UNSET:
        raise BadRequest(f'the spec replicas field "{path}" cannot be empty')
    metadata = wanted.metadata
    if metadata.uid and metadata.uid != obj.metadata.uid:
        why = f"Precondition failed: UID in precondition: {metadata.uid}, UID in object meta: {obj.metadata.uid}"
        raise errors.conflict(row, obj.metadata.name, why)
    if metadata.resourceVersion and metadata.resourceVersion != str(revision):
        raise errors.modified(row, obj.metadata.name)
    fields = custom_objects.content(obj)
    *parents, name = _steps(path)
    place: Any = fields
    for step in parents:
        inner = place.get(step)
        if not isinstance(inner, dict):
            inner = place[step] = {}
        place = inner
    place[name] = replicas
    custom_objects.put(obj, fields)


def _at(fields: dict[str, Any], path: str) -> Json:
    value: Json = fields
    for step in _steps(path):
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def _steps(path: str) -> list[str]:
    return path.removeprefix(".").split(".")
