"""How a field looks in JSON, by its descriptor. For ``json_readers`` and ``json_writers``."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from kemu.messages.k8s import options_pb2


def is_inline(field: FieldDescriptor) -> bool:
    """Whether the fields of this message stand in the JSON object of its parent."""
    inline: Any = options_pb2.inline
    return bool(field.has_options and field.GetOptions().Extensions[inline])


def map_value(field: FieldDescriptor) -> FieldDescriptor | None:
    """The field of the values where the field is a map, else None."""
    message_type = field.message_type
    if message_type is None or not message_type.GetOptions().map_entry:
        return None
    return message_type.fields_by_name["value"]
