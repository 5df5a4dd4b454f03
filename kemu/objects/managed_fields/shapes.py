"""Messages in one shape, whoever wrote them.

Clients in Go send every field that is no pointer, also an empty one (``hostIP: ""``, ``resources: {}``); others leave
them out, as kemu's actors do. To Kubernetes both are the same object. So that they are here, too, what a client sends
is brought into the shape without these fields: else an update that changes nothing would change the message.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor

from kemu.k8s import meta_v1_pb2
from kemu.objects.conversion import descriptors
from kemu.objects.managed_fields import schemas

_TIMES = (meta_v1_pb2.Time.DESCRIPTOR.full_name, meta_v1_pb2.MicroTime.DESCRIPTOR.full_name)
_INT_OR_STRING = meta_v1_pb2.IntOrString.DESCRIPTOR.full_name


class _Plan:
    """What is to be done about the fields of a message."""

    __slots__ = ("fields",)

    def __init__(self) -> None:
        self.fields: dict[str, tuple[bool, Any]] = {}
        """By name: whether the field goes when it is empty, and the function that goes on in its messages, or None."""

    def __call__(self, message: Any) -> None:
        fields = self.fields
        for field, value in message.ListFields():
            known = fields.get(field.name)
            if known is None:
                continue
            omits, tidy_inner = known
            if field.is_repeated:
                if tidy_inner is not None:
                    for one in value:
                        tidy_inner(one)
            elif field.message_type is None:
                if omits and not value:
                    message.ClearField(field.name)
            else:
                if tidy_inner is not None:
                    tidy_inner(value)
                if omits and not value.ListFields():
                    message.ClearField(field.name)


def tidy(api_version: str, kind: str, message: Any) -> None:
    """Take the fields away that are set to nothing and mean nothing."""
    name = schemas.find(api_version, kind)
    if name is not None:
        _plan(message.DESCRIPTOR, name)(message)
    if kind == "Node":
        _agree(message.spec, "podCIDR", message.spec.podCIDRs, str)
    elif kind == "Pod" and message.HasField("status"):
        _agree(message.status, "podIP", message.status.podIPs, lambda one: str(one.ip))


def _agree(message: Any, name: str, plural: Any, text: Callable[[Any], str]) -> None:
    """A field and the first element of its newer plural say the same (``conversion.go`` of ``core/v1``): the field
    counts where they do not."""
    one = getattr(message, name)
    if one and (not plural or text(plural[0]) != one):
        del plural[:]
        if text is str:
            plural.append(one)
        else:
            plural.add(ip=one)
    elif plural and not one:
        setattr(message, name, text(plural[0]))


@lru_cache(None)
def _plan(descriptor: Descriptor, name: str) -> _Plan:
    plan = _Plan()
    fields = schemas.resolve(name).fields or {}
    for field in descriptor.fields:
        inner = field.message_type
        if inner is not None and descriptors.is_inline(field):
            plan.fields[field.name] = False, _plan(inner, name)
            continue
        known = fields.get(field.name)
        if known is None or descriptors.map_value(field) is not None:
            continue
        omits = known.omits or known.has_zero
        if inner is None:
            if omits and not field.is_repeated:
                plan.fields[field.name] = True, None
        elif inner.full_name in _TIMES:
            plan.fields[field.name] = True, _tidy_time
        elif inner.full_name == _INT_OR_STRING:
            plan.fields[field.name] = False, _tidy_int_or_string
        else:
            expression = schemas.resolve(known.type).element if field.is_repeated else known.type
            if schemas.resolve(expression).fields is not None:
                plan.fields[field.name] = omits, _plan(inner, expression)
    return plan


def _tidy_time(message: Any) -> None:
    if not message.nanos and message.DESCRIPTOR.full_name == _TIMES[0]:
        message.ClearField("nanos")
    if not message.seconds and not message.nanos:
        message.Clear()


def _tidy_int_or_string(message: Any) -> None:
    message.ClearField("intVal" if message.type == 1 else "strVal")
