"""What is kept of updates: the same entries as those that are computed anew, whatever the object."""

from __future__ import annotations

import random
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor

from kemu.emulated.objects import meta, resources, times
from kemu.emulated.objects.conversion import convert, descriptors
from kemu.emulated.objects.managed_fields import known_updates, managers
from kemu.messages.k8s import core_v1_pb2

KINDS = ("pods", "nodes", "events", "services", "deployments", "statefulsets", "endpointslices", "leases", "configmaps",
         "persistentvolumeclaims", "customresourcedefinitions", "controllerrevisions")  # fmt: skip
STEPS = 150
_TEXTS = "", "a", "b"
_NUMBERS = 0, 1, 2, 999, 1_000, 5_000


def _value(dice: random.Random, field: FieldDescriptor) -> Any:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return dice.choice((b"", b"{}", b'{"f:spec":{"f:a":{}}}'))
    if field.type == FieldDescriptor.TYPE_BOOL:
        return dice.random() < 0.5
    return dice.choice(_TEXTS if field.type == FieldDescriptor.TYPE_STRING else _NUMBERS)


def _change(dice: random.Random, message: Any, depth: int = 0) -> None:
    """One field of a message, or of one in it: set, filled, moved, taken away."""
    fields = [field for field in message.DESCRIPTOR.fields if field.name != "managedFields" and depth < 7]
    if not fields:
        return
    if depth == 0:
        fields = [field for field in fields if field.message_type is not None] or fields
    present = [field for field, _ in message.ListFields() if field in fields]
    field = dice.choice(present if present and dice.random() < 0.6 else fields)
    value, entry = getattr(message, field.name), descriptors.map_value(field)
    if dice.random() < 0.1:
        message.ClearField(field.name)
    elif entry is not None:
        key = dice.choice("abc")
        if entry.message_type is not None:
            _change(dice, value[key], depth + 1)
        elif key in value and dice.random() < 0.3:
            del value[key]
        else:
            value[key] = _value(dice, entry)
    elif field.is_repeated and field.message_type is not None:
        if not value or dice.random() < 0.3:
            value.add()
        elif dice.random() < 0.2:
            value.reverse()
        elif dice.random() < 0.2:
            del value[dice.randrange(len(value))]
        if value:
            _change(dice, dice.choice(value), depth + 1)
    elif field.is_repeated:
        value.append(_value(dice, field))
    elif field.message_type is not None:
        value.SetInParent()
        _change(dice, value, depth + 1)
    else:
        setattr(message, field.name, _value(dice, field))


def _both(manager: managers.FieldManager, old: Any, new: Any, writer: str, now_s: int) -> None:
    """``new`` gets its entries."""
    anew = meta.copied(new)
    before = None if old is None else convert.to_manifest(old)
    found = manager.update(before, convert.to_manifest(new), writer, times.format_time(now_s))
    known_updates.put(anew, found)
    state = (None if old is None else old.SerializeToString(deterministic=True)), meta.copied(new)
    known_updates.update(manager, old, new, writer, now_s)
    assert new.SerializeToString(deterministic=True) == anew.SerializeToString(deterministic=True)
    assert state[0] is None or state[0] == old.SerializeToString(deterministic=True)
    # Once more: now it is kept.
    known_updates.update(manager, old, state[1], writer, now_s)
    assert state[1].SerializeToString(deterministic=True) == anew.SerializeToString(deterministic=True)


@pytest.mark.parametrize("plural", KINDS)
def test_entries_are_those_that_are_computed_anew(plural: str) -> None:
    dice = random.Random(plural)
    resource = resources.BY_PLURAL[plural]
    obj: Any = None
    now_s = 1_767_225_600
    for _ in range(STEPS):
        if obj is None or dice.random() < 0.05:
            obj = None
        old = obj
        new = resource.message() if old is None else meta.copied(old)
        for _ in range(dice.choice((1, 1, 2, 4)) if old is not None else 12):
            _change(dice, new)
        new.metadata.uid = "" if old is None else "u"
        if dice.random() < 0.05:
            del new.metadata.managedFields[:]
        subresource = "status" if resource.has_status and dice.random() < 0.3 and old is not None else ""
        now_s += dice.choice((0, 1))
        manager = managers.of(resource.api_version, resource.kind, subresource)
        _both(manager, old, new, dice.choice(("x", "y", "z")), now_s)
        obj = new


@pytest.mark.parametrize("ips", [("10.0.0.1", "10.0.0.2"), ("10.0.0.3", "10.0.0.1"), ("fd00::1", "@")])
def test_the_address_of_a_pod_may_be_any(ips: tuple[str, str]) -> None:
    status = managers.of("v1", "Pod", "status")
    for ip in ips:
        pod = core_v1_pb2.Pod()
        pod.metadata.name, pod.metadata.uid = "a", "u"
        pod.metadata.labels["app"] = "a"
        known_updates.update(managers.of("v1", "Pod", ""), None, pod, "maker", 1_767_225_600)
        running = meta.copied(pod)
        running.spec.nodeName = "n"
        _both(managers.of("v1", "Pod", ""), pod, running, "scheduler", 1_767_225_601)
        told = meta.copied(running)
        told.status.podIP = ip
        told.status.podIPs.add(ip=ip)
        _both(status, running, told, "kubelet", 1_767_225_602)
        assert ip in told.metadata.managedFields[-1].fieldsV1.Raw.decode()
        ended = meta.copied(told)
        ended.status.phase = "Succeeded"
        _both(status, told, ended, "kubelet", 1_767_225_603)
        moved = meta.copied(ended)
        moved.status.podIPs[0].ip = "10.9.9.9"
        _both(status, ended, moved, "other", 1_767_225_604)
        two = meta.copied(moved)
        two.status.podIPs.add(ip="10.0.0.1")
        _both(status, moved, two, "kubelet", 1_767_225_605)
