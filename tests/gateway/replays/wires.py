"""Bodies as they were recorded and as they go over the wire; both as one kind of document."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

MAGIC = b"k8s\x00"
_OTHERS: dict[tuple[str, str], type[Message]] = {("v1", "Binding"): core_v1_pb2.Binding}
_CUT = re.compile(r"\.\.\.<\+\d+>$")


@dataclass
class Document:
    """What a body says, whatever its encoding."""

    value: Any = None
    """JSON; None: could not be read whole."""
    kind: str = ""
    prefix: str = ""
    """The text of JSON that was recorded only in part."""
    is_protobuf: bool = False
    metadata: dict[str, str] = field(default_factory=dict)
    """Of an object of which only the beginning was recorded: name, namespace, UID, resource version."""


def recorded_request(body: Any) -> bytes | None:
    """Bytes to send; raises :class:`ValueError` for what was not recorded whole."""
    if body is None:
        return None
    if isinstance(body, str):
        if _CUT.search(body):
            raise ValueError("only the beginning of the request was recorded")
        # Protobuf, too, where it is UTF-8 by chance.
        return body.encode()
    if "hex" in body:
        return bytes.fromhex(body["hex"])
    raw = base64.b64decode(body["raw_b64"])
    if len(raw) != body["raw_len"]:
        raise ValueError("only the beginning of the request was recorded")
    return envelope(body["apiVersion"], body["kind"], raw)


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    """``runtime.Unknown`` after its magic number."""
    meta = _delimited(1, api_version.encode()) + _delimited(2, kind.encode())
    return MAGIC + _delimited(1, meta) + _delimited(2, raw) + _delimited(3, b"") + _delimited(4, b"")


def with_metadata(body: bytes, translated: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    """An object in protobuf, with what ``translated`` makes of its document."""
    fields = dict(_fields(body[len(MAGIC) :]))
    meta = dict(_fields(fields.get(1, b"")))
    api_version, kind = meta.get(1, b"").decode(), meta.get(2, b"").decode()
    message_class = _class(api_version, kind)
    if message_class is None:
        return body
    document = convert.to_json(message_class.FromString(fields.get(2, b"")))
    return envelope(api_version, kind, convert.from_json(message_class, translated(document)).SerializeToString())


def recorded_answer(body: Any) -> Document:
    if body is None or body == "":
        return Document()
    if isinstance(body, str):
        if body.startswith(MAGIC.decode()):
            return actual(body.encode(), "")
        if _CUT.search(body):
            return _cut_json(_CUT.sub("", body))
        return _json(body)
    if isinstance(body, dict) and ("raw_b64" in body or "hex" in body):
        if "hex" in body:
            return actual(bytes.fromhex(body["hex"]), "application/vnd.kubernetes.protobuf")
        raw = base64.b64decode(body["raw_b64"])
        if len(raw) == body["raw_len"]:
            return Document(_message(body["apiVersion"], body["kind"], raw), body["kind"], is_protobuf=True)
        return Document(None, body["kind"], is_protobuf=True, metadata=_metadata(raw))
    return Document(body, body.get("kind", "") if isinstance(body, dict) else "")


def recorded_frame(frame: Any) -> tuple[str, Document]:
    """Type and object of a watch event."""
    if isinstance(frame, str):
        if _CUT.search(frame):
            match = re.match(r'\{"type":"(\w+)","object":', frame)
            return (match[1] if match else "?"), _cut_json(_CUT.sub("", frame)[match.end() if match else 0 :])
        event = json.loads(frame)
        return event["type"], Document(event["object"], event["object"].get("kind", ""))
    return frame["type"], recorded_answer(frame.get("object"))


def actual(body: bytes, content_type: str) -> Document:
    if not body:
        return Document()
    if body.startswith(MAGIC):
        fields = dict(_fields(body[4:]))
        meta = dict(_fields(fields.get(1, b"")))
        kind = meta.get(2, b"").decode()
        value = _message(meta.get(1, b"").decode(), kind, fields.get(2, b""))
        return Document(value, kind, is_protobuf=True)
    if "json" in content_type or body.startswith(b"{"):
        return _json(body.decode())
    return Document(body.decode(errors="replace"))


def frames(stream: bytes, content_type: str) -> tuple[list[tuple[str, Document]], bytes]:
    """Complete events at the beginning of ``stream``, and the rest."""
    found: list[tuple[str, Document]] = []
    if "protobuf" not in content_type:
        *lines, rest = stream.split(b"\n")
        for line in lines:
            if line:
                event = json.loads(line)
                found.append((event["type"], Document(event["object"], event["object"].get("kind", ""))))
        return found, rest
    while len(stream) >= 4 and len(stream) >= 4 + int.from_bytes(stream[:4]):
        size = 4 + int.from_bytes(stream[:4])
        outer = dict(_fields(stream[4:size]))
        held = dict(_fields(outer.get(2, b"")))
        found.append((outer.get(1, b"").decode(), actual(held.get(1, b""), "")))
        stream = stream[size:]
    return found, stream


def beginning(text: str) -> Any:
    """JSON that is cut off, closed after the last value that is complete; None if there is none."""
    closing: list[str] = []
    last = 0
    in_string = escaped = False
    closings_at_last = ""
    for position, character in enumerate(text):
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
            continue
        if character == '"':
            in_string = True
        elif character in "{[":
            closing.append("}" if character == "{" else "]")
        elif character in "}]":
            closing.pop()
            last, closings_at_last = position + 1, "".join(reversed(closing))
        elif character == ",":
            last, closings_at_last = position, "".join(reversed(closing))
    try:
        return json.loads(text[:last] + closings_at_last) if last else None
    except ValueError:
        return None


def _cut_json(text: str) -> Document:
    known = beginning(text)
    if not isinstance(known, dict):
        return Document(prefix=text)
    metadata = known.get("metadata") or {}
    told = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion") if name in metadata}
    return Document(kind=known.get("kind", ""), prefix=text, metadata=told)


def _json(text: str) -> Document:
    try:
        value = json.loads(text)
    except ValueError:
        return Document(text)
    return Document(value, value.get("kind", "") if isinstance(value, dict) else "")


def _class(api_version: str, kind: str) -> type[Message] | None:
    row = resources.BY_KIND.get(kind)
    if row is not None and row.api_version == api_version:
        return row.message
    return _OTHERS.get((api_version, kind))


def _message(api_version: str, kind: str, raw: bytes) -> Any:
    """JSON of a message of Kubernetes; None for kinds that kemu has no message for."""
    row = resources.BY_KIND.get(kind)
    if row is not None and row.api_version == api_version:
        return {"kind": kind, "apiVersion": row.api_version, **convert.to_json(row.message.FromString(raw))}
    item = resources.BY_KIND.get(kind.removesuffix("List"))
    if kind.endswith("List") and item is not None and item.api_version == api_version:
        items = [convert.to_json(item.message.FromString(value)) for number, value in _fields(raw) if number == 2]
        metadata = convert.to_json(meta_v1_pb2.ListMeta.FromString(dict(_fields(raw)).get(1, b"")))
        return {"kind": kind, "apiVersion": item.api_version, "metadata": metadata, "items": items}
    other = _OTHERS.get((api_version, kind))
    if other is not None:
        return {"kind": kind, "apiVersion": api_version, **convert.to_json(other.FromString(raw))}
    if kind == "Status":
        return {"kind": kind, "apiVersion": "v1", **convert.to_json(meta_v1_pb2.Status.FromString(raw))}
    return None


def _metadata(beginning: bytes) -> dict[str, str]:
    try:
        number, held = next(_fields(beginning))
        if number != 1:
            return {}
        names = {1: "name", 3: "namespace", 5: "uid", 6: "resourceVersion"}
        return {names[field]: value.decode() for field, value in _fields(held) if field in names and value}
    except (IndexError, StopIteration, UnicodeDecodeError):
        return {}


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Fields of wire type 2; others are passed over."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        if tag & 7 == 2:
            size, position = _varint(data, position)
            yield tag >> 3, data[position : position + size]
            position += size
        elif tag & 7 == 0:
            _, position = _varint(data, position)
        else:
            position += 8 if tag & 7 == 1 else 4


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7


def _delimited(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _encoded(len(data)) + data


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
