"""Hypothesis strategies for any message, as a real client could have made it."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

from kemu.emulated.objects.conversion import descriptors

texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
keys = st.from_regex(r"[a-z][a-z0-9./-]{0,8}", fullmatch=True)
quantity_texts = st.sampled_from(["1", "500m", "1.5Gi", "1e3", "0", "-7", "100500u", "12E"])
whole_seconds = st.integers(1, 4_000_000_000)


@st.composite
def messages(draw: st.DrawFn, message_class: type[Message], depth: int = 0) -> Any:
    """A message with some of its fields set, some of them to nothing but set."""
    message = message_class()
    name = message.DESCRIPTOR.name
    if name == "Quantity":
        message.string = draw(quantity_texts)
    elif name == "IntOrString":
        message.type = draw(st.sampled_from([0, 1]))
        if message.type:
            message.strVal = draw(texts)
        else:
            message.intVal = draw(st.integers(-(2**31), 2**31 - 1))
    elif name == "Time":
        message.seconds = draw(whole_seconds)
    elif name == "MicroTime":
        message.seconds = draw(whole_seconds)
        message.nanos = draw(st.integers(0, 999_999)) * 1000
    elif name == "RawExtension":
        message.raw = json.dumps({draw(keys): draw(texts)}, separators=(",", ":"), ensure_ascii=False).encode()
    elif name == "FieldsV1":
        message.Raw = json.dumps({"f:spec": {draw(keys): {}}}, separators=(",", ":")).encode()
    else:
        fields = [field for field in message.DESCRIPTOR.fields if depth < 4 or field.message_type is None]
        for field in (
            draw(st.lists(st.sampled_from(fields), max_size=4, unique_by=lambda one: one.name)) if fields else ()
        ):
            _fill(draw, message, field, depth)
    return message


def _fill(draw: st.DrawFn, message: Any, field: FieldDescriptor, depth: int) -> None:
    value_field = descriptors.map_value(field)
    target = getattr(message, field.name)
    if value_field is not None:
        for key in draw(st.lists(keys, min_size=1, max_size=3, unique=True)):
            if value_field.message_type is None:
                target[key] = draw(_scalars(value_field))
            else:
                target[key].CopyFrom(draw(messages(value_field.message_type._concrete_class, depth + 1)))
    elif field.is_repeated:
        for _ in range(draw(st.integers(1, 2))):
            if field.message_type is None:
                target.append(draw(_scalars(field)))
            else:
                target.append(draw(messages(field.message_type._concrete_class, depth + 1)))
    elif field.message_type is not None:
        child = draw(messages(field.message_type._concrete_class, depth + 1))
        # An inline message leaves no trace of its own in JSON.
        if not descriptors.is_inline(field) or child.ListFields():
            target.CopyFrom(child)
            target.SetInParent()
    else:
        setattr(message, field.name, draw(_scalars(field)))


def _scalars(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=8)
    return {
        FieldDescriptor.CPPTYPE_STRING: texts,
        FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
        FieldDescriptor.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
        FieldDescriptor.CPPTYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    }[field.cpp_type]
