"""Objects in objects (``x-kubernetes-embedded-resource``): their ``apiVersion``, ``kind`` and ``metadata``
(``schema/objectmeta``)."""

from __future__ import annotations

from typing import Any

from kemu import errors
from kemu.emulated.objects import names
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.managed_fields import go_decoding
from kemu.emulated.objects.managed_fields import schemas as go_schemas
from kemu.emulated.objects.validation import metadata as object_metadata
from kemu.emulated.schemas import problems, structural
from kemu.emulated.schemas.problems import Value, child
from kemu.emulated.schemas.structural import Node
from kemu.errors import Cause
from kemu.messages.k8s import meta_v1_pb2

OBJECT_META = "meta.v1.ObjectMeta"


class WrongMeta(errors.KemuError):
    """Metadata that cannot be decoded; ``cause`` says where and why."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(problems.text_of(cause))
        self.cause = cause


def metadata_of(
    value: dict[str, Any], path: str, *, drops: bool = False, unknown: list[str] | None = None
) -> dict[str, Any] | None:
    """``metadata`` as Go writes it, without fields that it does not know; None: there is none.

    ``drops``: fields of wrong types go, too. ``unknown``: the list to which paths of unknown fields are added. Raises
    ValueError with the text of Go's decoder.
    """
    if "metadata" not in value:
        return None
    metadata = value["metadata"]
    if metadata is None:
        return {}
    wrong = go_decoding.of_json(OBJECT_META, metadata)
    if wrong is not None:
        if not drops:
            raise ValueError(wrong)
        if not isinstance(metadata, dict):
            return None
        metadata = {
            name: one for name, one in metadata.items() if go_decoding.of_json(OBJECT_META, {name: one}) is None
        }
    assert isinstance(metadata, dict)
    if unknown is not None:
        prefix = child(path, "metadata")
        for text in go_decoding.strict(OBJECT_META, metadata):
            if text.startswith("unknown field"):
                unknown.append(f"{prefix}.{text.split(chr(34))[1]}")
    return _written(metadata)


def _written(metadata: dict[str, Any]) -> dict[str, Any]:
    kept = _known(go_schemas.resolve(OBJECT_META), metadata)
    found = go_schemas.as_go_writes(OBJECT_META, kept)
    assert isinstance(found, dict)
    return {name: one for name, one in found.items() if name != "creationTimestamp" or one is not None}


def _known(kind: go_schemas.Type, value: Value) -> Value:
    """Without fields that the type does not have."""
    if kind.kind == go_schemas.LIST and isinstance(value, list):
        element = go_schemas.resolve(kind.element)
        return [_known(element, one) for one in value]
    if kind.kind == go_schemas.MAP and isinstance(value, dict):
        return {name: "" if one is None else one for name, one in value.items()}
    if kind.fields is None or not isinstance(value, dict):
        return value
    return {
        name: _known(go_schemas.resolve(kind.fields[name].type), one)
        for name, one in value.items()
        if name in kind.fields and one is not None
    }


def coerce(
    value: Value, node: Node | None, path: str, *, is_root: bool, drops: bool = False, unknown: list[str] | None = None
) -> None:
    """Bring the heads of embedded objects into shape, in place. ``is_root``: the value is an object itself.

    Raises :class:`WrongMeta`; with ``drops`` what is wrong goes instead. ``unknown``: as in :func:`metadata_of`.
    """
    _coerce(value, structural.as_root(node) if is_root else node, path, drops, unknown)


def _coerce(value: Value, node: Node | None, path: str, drops: bool, unknown: list[str] | None) -> None:
    if node is None:
        return
    if isinstance(value, list):
        if node.items is not None:
            for index, one in enumerate(value):
                if isinstance(one, dict | list):
                    _coerce(one, node.items, f"{path}[{index}]", drops, unknown)
    elif isinstance(value, dict):
        if node.embedded:
            _coerce_head(value, path, drops, unknown)
        for name, one in value.items():
            if not isinstance(one, dict | list):
                continue
            known = node.properties.get(name)
            if known is not None:
                _coerce(one, known, child(path, name), drops, unknown)
            elif node.additional_node is not None:
                _coerce(one, node.additional_node, f"{path}[{name}]", drops, unknown)


def _coerce_head(value: dict[str, Any], path: str, drops: bool, unknown: list[str] | None) -> None:
    for name in ("apiVersion", "kind"):
        if name in value and not isinstance(value[name], str):
            if not drops:
                raise WrongMeta(problems.invalid(child(path, name), value[name], "must be a string"))
            del value[name]
    if "metadata" in value:
        try:
            metadata = metadata_of(value, path, drops=drops, unknown=unknown)
        except ValueError as error:
            raise WrongMeta(problems.invalid(child(path, "metadata"), value["metadata"], str(error))) from None
        if metadata is not None:
            value["metadata"] = metadata


def check(value: Value, node: Node | None, path: str, *, is_root: bool, found: list[Cause]) -> None:
    """Judge the heads of embedded objects (``objectmeta.Validate``)."""
    _check(value, structural.as_root(node) if is_root else node, path, found)


def has_embedded(node: Node | None) -> bool:
    """Whether :func:`check` and :func:`coerce` have anything to do."""
    return node is not None and (node.embedded or any(map(has_embedded, node.children())))


def _check(value: Value, node: Node | None, path: str, found: list[Cause]) -> None:
    if node is None:
        return
    if isinstance(value, list):
        for index, one in enumerate(value):
            if isinstance(one, dict | list):
                _check(one, node.items, f"{path}[{index}]", found)
    elif isinstance(value, dict):
        if node.embedded:
            _check_head(value, path, found)
        for name, one in value.items():
            if not isinstance(one, dict | list):
                continue
            known = node.properties.get(name)
            if known is not None:
                _check(one, known, child(path, name), found)
            elif node.additional_node is not None:
                _check(one, node.additional_node, f"{path}[{name}]", found)


def _check_head(value: dict[str, Any], path: str, found: list[Cause]) -> None:
    for name in ("apiVersion", "kind"):
        here = child(path, name)
        if name not in value:
            found.append(problems.required(here))
            continue
        text = value[name]
        if not isinstance(text, str):
            found.append(problems.invalid(here, text, "must be a string"))
        elif not text:
            found.append(problems.invalid(here, text, "must not be empty"))
        elif name == "apiVersion":
            if text.count("/") > 1:
                found.append(problems.invalid(here, text, f"unexpected GroupVersion string: {text}"))
        elif wrong := names.dns_1035_label(text.lower()):
            detail = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
            found.append(problems.invalid(here, text, detail))
    if "metadata" in value:
        here = child(path, "metadata")
        try:
            metadata = metadata_of(value, path)
        except ValueError as error:
            found.append(problems.invalid(here, value["metadata"], str(error)))
            return
        _check_metadata(metadata or {}, here, found)


def _check_metadata(metadata: dict[str, Any], path: str, found: list[Cause]) -> None:
    message, _ = convert.partial_json(meta_v1_pb2.ObjectMeta, metadata)
    if not message.name:
        message.name = "fakename"
    inner: list[Cause] = []
    object_metadata.check_create(message, bool(message.namespace), object_metadata.OF_ANY_KIND, None, inner)
    for cause in inner:
        at = path + cause.field.removeprefix("metadata")
        found.append(Cause(at, cause.reason, cause.message))
