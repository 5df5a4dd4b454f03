"""What Go's spew prints of a pod template (``dump.ForHash``): the text that is hashed for its name.

Every struct prints with all of its fields, set or not, and with their types; a message of protobuf has the same
fields. Elements of lists and maps print without their type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.caches import text_cache
from kemu.emulated.objects.conversion import go_members
from kemu.emulated.objects.facts import go_types
from kemu.emulated.objects.plain import Json
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

_NUMBER = re.compile(r"([+-]?[0-9]+)([eE][+-]?[0-9]+|[A-Za-z]*)", re.ASCII)
_EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18} | {
    f"{letter}i": 10 * power for power, letter in enumerate("KMGTPE", 1)
}


def of(struct: str, message: Message) -> str:
    """Text of a struct, such as ``core.v1.EndpointPort``, and the message that stands for it."""
    return f"({go_types.short(struct)}){_body(struct, message)}"


def text(template: core_v1_pb2.PodTemplateSpec) -> str:
    """Text of a PodTemplateSpec."""
    return of(go_members.TEMPLATE, template)


def _typed(name: str, value: Json | Message) -> str:
    """A value after its type, as a field of a struct prints."""
    if name.startswith("*"):
        return f"({go_types.short(name)}){'<nil>' if value is None else _body(name[1:], value)}"
    if value is None:
        return _nothing(name)
    return f"({go_types.short(name)}){_body(name, value)}"


@lru_cache(4096)
def _nothing(name: str) -> str:
    return f"({go_types.short(name)}){_body(name, None)}"


def _body(name: str, value: Any) -> str:
    written = _LEAVES.get(name)
    if written is not None:
        return written(value)
    pair = go_types.map_types(name)
    if pair is not None:
        if not value:
            return "<nil>"
        return f"map[{' '.join(f'{key}:{_body(pair[1], value[key])}' for key in sorted(value))}]"
    element = go_types.element_type(name)
    if element is not None:
        return f"[{' '.join(_body(element, one) for one in value)}]" if value else "<nil>"
    fields = go_types.fields_of(name)
    if fields is not None:
        printed = (f"{field.name}:{_typed(field.type, go_members.read(value, name, field))}" for field in fields)
        return f"{{{' '.join(printed)}}}"
    return _scalar(go_types.plain(name), value)


def _scalar(name: str, value: Json) -> str:
    if name == "string":
        return "" if value is None else str(value)
    if name == "bool":
        return "true" if value else "false"
    return str(value or 0)


def _time(value: Json) -> str:
    """Templates carry no times: the API server has no use for them, and users none either."""
    return "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"


def _int_or_string(value: meta_v1_pb2.IntOrString) -> str:
    kind, number, text = (0, 0, "") if value is None else (value.type, value.intVal, value.strVal)
    return f"{{Type:(intstr.Type){kind} IntVal:(int32){number} StrVal:(string){text}}}"


def _quantity(value: meta_v1_pb2.Quantity) -> str:
    return _quantity_text("" if value is None else value.string)


@text_cache(4096)
def _quantity_text(given: str) -> str:
    """``ParseQuantity`` of what the API server stores: which fields hold the number depends on how it is written."""
    if not given:
        return _quantity_fields(0, 0, "", "")
    text = given if _is_kept(given) else str(quantities.parse(given))
    if text == "0":
        return _quantity_fields(0, 0, "0", "DecimalSI")
    digits, exponent = _split(text)
    form = quantities.parse(text).format
    kept = text if _is_kept(text) else ""
    if form is quantities.Format.BINARY_SI:
        return _quantity_fields(int(digits) << exponent, 0, kept, form.value)
    return _quantity_fields(int(digits), exponent, kept, form.value)


def _split(text: str) -> tuple[str, int]:
    """The digits of a quantity and the exponent of its suffix, to the base 2 or 10."""
    match = _NUMBER.fullmatch(text)
    assert match is not None
    digits, suffix = match.groups()
    if suffix in _EXPONENTS:
        return digits, _EXPONENTS[suffix]
    return digits, int(suffix[1:])


def _is_kept(text: str) -> bool:
    """Whether ``ParseQuantity`` keeps the text, as it takes it for canonical."""
    match = _NUMBER.fullmatch(text)
    if match is None or text == "0":
        return text == "0"
    digits, exponent = _split(text)
    if quantities.parse(text).format is quantities.Format.BINARY_SI:
        return exponent % 10 == 0 and int(digits) & 7 != 0
    digits = digits.lstrip("+-")
    return exponent % 3 == 0 and not digits.endswith("000") and not digits.startswith("0")


def _quantity_fields(value: int, scale: int, text: str, form: str) -> str:
    amount = f"(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}}"
    decimal = "(resource.infDecAmount){Dec:(*inf.Dec)<nil>}"
    return f"{{i:{amount} d:{decimal} s:(string){text} Format:(resource.Format){form}}}"


_LEAVES: dict[str, Callable[[Any], str]] = {
    go_members.TIME: _time,
    go_members.INT_OR_STRING: _int_or_string,
    go_members.QUANTITY: _quantity,
}
