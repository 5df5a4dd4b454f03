"""What stands in the body of a write, and in which format: JSON, YAML, or protobuf in its envelope."""

from __future__ import annotations

from typing import NamedTuple

from kemu.errors import BadRequest, UnsupportedMediaType
from kemu.gateway.requests import envelopes, negotiation
from kemu.gateway.requests.messages import Request
from kemu.v1 import api_pb2

PATCH_TYPES: dict[str, api_pb2.PatchRequest.Type] = {
    "application/json-patch+json": api_pb2.PatchRequest.JSON,
    "application/merge-patch+json": api_pb2.PatchRequest.MERGE,
    "application/strategic-merge-patch+json": api_pb2.PatchRequest.STRATEGIC,
    "application/apply-patch+yaml": api_pb2.PatchRequest.APPLY,
}


class Body(NamedTuple):
    data: bytes
    """Of protobuf, the message without its envelope."""
    content_type: str
    """As ``CreateRequest.content_type``: empty for protobuf."""
    api_version: str
    """Of protobuf, as the envelope says; ``kind``, too."""
    kind: str


def media_type(request: Request) -> str:
    """Of the body, without parameters; JSON if the client says nothing."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() or negotiation.JSON


async def read(request: Request, limit: int, kinds: tuple[tuple[str, str], ...]) -> Body:
    """``kinds``: API version and kind of what is expected, the first for messages that do not say.

    Raises :class:`kemu.errors.ApiError`.
    """
    check_media(request)
    data = await request.body(limit)
    found = decode(request, data)
    if found.content_type or not found.kind or (found.api_version, found.kind) in kinds:
        return found
    wanted = kinds[0][1]
    short = found.api_version.rpartition("/")[2]
    raise BadRequest(
        f'{found.kind} in version "{short}" cannot be handled as a {wanted}: no kind "{found.kind}" is registered for '
        f'version "{found.api_version}"'
    )


def check_media(request: Request) -> str:
    """The media type of the body. Raises :class:`kemu.errors.UnsupportedMediaType`."""
    media = media_type(request)
    if media not in negotiation.SERVED:
        raise unsupported(negotiation.SERVED)
    return media


def decode(request: Request, data: bytes) -> Body:
    """Raises :class:`kemu.errors.ApiError`."""
    media = check_media(request)
    if media != negotiation.PROTOBUF:
        return Body(data, media, "", "")
    api_version, kind, message = envelopes.unpack(data)
    return Body(message, "", api_version, kind)


def patch_type(request: Request) -> api_pb2.PatchRequest.Type:
    """Of ``PatchRequest``. Raises :class:`kemu.errors.UnsupportedMediaType`."""
    found = PATCH_TYPES.get(media_type(request))
    if found is None:
        raise unsupported(tuple(PATCH_TYPES))
    return found


def unsupported(known: tuple[str, ...]) -> UnsupportedMediaType:
    return UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)}"
    )
