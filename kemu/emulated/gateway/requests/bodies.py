"""What stands in the body of a write, and in which format: JSON, YAML, or protobuf in its envelope."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message

from kemu.emulated.apiserver.registry import bodies as registry_bodies
from kemu.emulated.gateway.requests import documents, envelopes, negotiation
from kemu.emulated.gateway.requests.messages import Request
from kemu.emulated.objects.conversion import convert, go_values, sizes
from kemu.errors import BadRequest, UnsupportedMediaType
from kemu.messages.v1 import api_pb2

PATCH_TYPES: dict[str, api_pb2.PatchRequest.Type] = {
    "application/json-patch+json": api_pb2.PatchRequest.JSON,
    "application/merge-patch+json": api_pb2.PatchRequest.MERGE,
    "application/strategic-merge-patch+json": api_pb2.PatchRequest.STRATEGIC,
    "application/apply-patch+yaml": api_pb2.PatchRequest.APPLY,
}


_STRATEGIC = "application/strategic-merge-patch+json"


class Body(NamedTuple):
    data: bytes
    """Data of protobuf, the message without its envelope."""
    content_type: str
    """As ``CreateRequest.content_type``: empty for protobuf."""
    api_version: str
    """API version of protobuf, as the envelope says; ``kind``, too."""
    kind: str


def media_type(request: Request) -> str:
    """Media type of the body, without parameters; JSON if the client says nothing."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() or negotiation.JSON


async def read(request: Request, limit: int, kinds: tuple[tuple[str, str], ...]) -> Body:
    """``kinds``: API version and kind of what is expected, the first for messages that do not say.

    Raises :class:`kemu.errors.ApiError`.
    """
    media = check_media(request)
    data = await request.body(limit)
    try:
        found = _decoded(media, data)
    except BadRequest as error:
        raise registry_bodies.unrecognized(f"must be of type {kinds[0][1]}", error.message, data) from None
    if found.content_type or not found.kind or (found.api_version, found.kind) in kinds:
        return found
    wanted = kinds[0][1]
    short = found.api_version.rpartition("/")[2]
    raise BadRequest(
        f'{found.kind} in version "{short}" cannot be handled as a {wanted}: no kind "{found.kind}" is registered for '
        f'version "{found.api_version}"'
    )


M = TypeVar("M", bound=Message)


async def message(request: Request, limit: int, kind: type[M], kinds: tuple[tuple[str, str], ...]) -> M:
    """A message of class ``kind`` that the gateway itself reads; see :func:`read`."""
    return parse(await read(request, limit, kinds), kind)


def parse(body: Body, kind: type[M]) -> M:
    """Raises :class:`kemu.errors.BadRequest`. Fields that the kind does not have are ignored."""
    if not body.content_type:
        try:
            message = kind.FromString(body.data)
            sizes.check_message(message, len(body.data))
            go_values.tidy(message)
            return message
        except (DecodeError, ValueError) as error:
            raise BadRequest(f"the object is not a {kind.DESCRIPTOR.name}: {error}") from None
    found = documents.mapping(body.data, body.content_type)
    fields = {name: value for name, value in found.items() if name not in ("apiVersion", "kind")}
    read, problems = convert.partial_json(kind, fields)
    wrong = [str(problem) for problem in problems if not problem.message.startswith("unknown field")]
    if wrong:
        raise BadRequest(f"the object is not a {kind.DESCRIPTOR.name}: {'; '.join(wrong)}")
    return read


def check_media(request: Request) -> str:
    """The media type of the body. Raises :class:`kemu.errors.UnsupportedMediaType`."""
    media = media_type(request)
    if media not in negotiation.SERVED:
        raise unsupported(negotiation.SERVED)
    return media


def decode(request: Request, data: bytes) -> Body:
    """Raises :class:`kemu.errors.ApiError`."""
    return _decoded(check_media(request), data)


def _decoded(media: str, data: bytes) -> Body:
    if media != negotiation.PROTOBUF:
        return Body(data, media, "", "")
    api_version, kind, message = envelopes.unpack(data)
    return Body(message, "", api_version, kind)


def patch_type(request: Request, *, is_custom: bool = False) -> api_pb2.PatchRequest.Type:
    """Patch type of ``PatchRequest``; custom kinds have no strategic ones. Raises
    :class:`kemu.errors.UnsupportedMediaType`."""
    media = media_type(request)
    found = PATCH_TYPES.get(media)
    if found is None or (is_custom and media == _STRATEGIC):
        raise unsupported(tuple(one for one in PATCH_TYPES if not (is_custom and one == _STRATEGIC)))
    return found


def unsupported(known: tuple[str, ...]) -> UnsupportedMediaType:
    return UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)}"
    )
