"""The causes of a refusal, one for each field, in the words of ``k8s.io/apimachinery/pkg/util/validation/field``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import go_structs
from kemu.emulated.objects.plain import Json
from kemu.errors import Cause, Invalid
from kemu.messages.k8s.objects import KubernetesObject

INVALID = "FieldValueInvalid"
REQUIRED = "FieldValueRequired"
DUPLICATE = "FieldValueDuplicate"
NOT_SUPPORTED = "FieldValueNotSupported"
NOT_FOUND = "FieldValueNotFound"
FORBIDDEN = "FieldValueForbidden"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
INTERNAL_ERROR = "InternalError"

IMMUTABLE = "field is immutable"


class Struct(dict[str, Json]):
    """A struct of Go, whose fields are told in their order."""


def invalid(field: str, value: Any, detail: str) -> Cause:
    return Cause(
        field, INVALID, f"Invalid value: {shown(value)}: {detail}" if detail else f"Invalid value: {shown(value)}"
    )


def required(field: str, detail: str = "") -> Cause:
    return Cause(field, REQUIRED, f"Required value: {detail}" if detail else "Required value")


def duplicate(field: str, value: Json | Message, detail: str = "") -> Cause:
    return Cause(field, DUPLICATE, f"Duplicate value: {shown(value)}{f': {detail}' if detail else ''}")


def not_supported(field: str, value: Json | Message, supported: Sequence[str]) -> Cause:
    known = ", ".join(shown(one) for one in supported)
    return Cause(field, NOT_SUPPORTED, f"Unsupported value: {shown(value)}: supported values: {known}")


def not_found(field: str, value: Json) -> Cause:
    return Cause(field, NOT_FOUND, f"Not found: {shown(value)}")


def forbidden(field: str, detail: str) -> Cause:
    return Cause(field, FORBIDDEN, f"Forbidden: {detail}")


def too_long(field: str, limit_bytes: int) -> Cause:
    return Cause(field, TOO_LONG, f"Too long: may not be more than {limit_bytes} bytes")


def internal_error(field: str, detail: str) -> Cause:
    return Cause(field, INTERNAL_ERROR, f"Internal error: {detail}")


def too_many(field: str, actual: int, limit: int) -> Cause:
    return Cause(field, TOO_MANY, f"Too many: {actual}: must have at most {limit} items")


def shown(value: Json | Message) -> str:
    """A refused value as Kubernetes prints it: strings quoted, messages (also in lists) as its internal structs."""
    if isinstance(value, Message):
        value = go_structs.value(value)
    elif isinstance(value, list):
        value = [go_structs.value(one) if isinstance(one, Message) else one for one in value]
    elif isinstance(value, dict) and not isinstance(value, Struct):
        value = {key: value[key] for key in sorted(value)}
    # Text that is no UTF-8 comes as bytes.
    text = json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), default=lambda raw: raw.decode(errors="replace")
    )
    if isinstance(value, str) and not value.isprintable():
        return _CONTROL.sub(_escaped, text.replace("\x7f", "\\u007f"))
    return text.translate(_ESCAPED) if isinstance(value, list | dict) else text


def _escaped(match: re.Match[str]) -> str:
    """As Go quotes a letter of a string, not of JSON."""
    number = int(match[1], 16)
    return {7: r"\a", 11: r"\v"}.get(number, f"\\x{number:02x}")


_CONTROL = re.compile(r"(?<!\\)\\u00([01][0-9a-f]|7f)")


_ESCAPED = {ord(one): f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}
"""What Go escapes in JSON, and not in the text of a string."""


def error(obj: KubernetesObject, causes: Sequence[Cause]) -> Invalid:
    """The refusal of a whole object: ``Pod "a" is invalid: spec.containers: Required value``."""
    api_version, kind = resources.kind_of(obj)
    group = api_version.rpartition("/")[0]
    qualified = f"{kind}.{group}" if group else kind
    error = error_of_kind(qualified, kind, obj.metadata.name or obj.metadata.generateName, causes)
    if kind not in resources.BY_KIND or resources.BY_KIND[kind].group != group:
        error.kind = qualified  # the kind alone does not say the group
    return error


def error_of_kind(qualified: str, kind: str, name: str, causes: Sequence[Cause]) -> Invalid:
    """``qualified``: the kind with its group."""
    # Kubernetes, too, drops repeated texts.
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    what = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return Invalid(f"{qualified} {shown(name)} is invalid: {what}", kind=kind, name=name, causes=causes)


def check_dry_run(values: Sequence[str]) -> list[Cause]:
    """``metav1validation.ValidateDryRun``: "All", once, is all there is."""
    if all(value == "All" for value in values):
        return []
    return [not_supported("dryRun", list(values), ("All",))]


def error_of_options(kind: str, causes: Sequence[Cause]) -> Invalid:
    """The refusal of the options of a request: ``DeleteOptions.meta.k8s.io "" is invalid: …``."""
    return error_of_kind(f"{kind}.meta.k8s.io", kind, "", causes)
