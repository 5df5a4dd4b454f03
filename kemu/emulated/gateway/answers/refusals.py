"""Refusals over HTTP: a ``Status`` in the form that the client asked for."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.apiserver import flows
from kemu.emulated.gateway.answers import representations, responses
from kemu.emulated.gateway.answers.responses import Header, Response
from kemu.emulated.gateway.requests import negotiation
from kemu.emulated.gateway.requests.messages import Request
from kemu.emulated.gateway.requests.negotiation import Form
from kemu.emulated.objects import statuses
from kemu.emulated.objects.conversion import go_values
from kemu.emulated.objects.resources import Resource
from kemu.errors import ApiError, Forbidden, InternalError, NotAcceptable, UnsupportedMediaType
from kemu.messages.k8s import meta_v1_pb2

_OF_ROUTES = ("406: ", "415: ")
"""How refusals of the router begin."""
_EMPTY_DETAILS = (
    "the server could not find the requested resource",
    "the server does not allow this method on the requested resource",
    "the server rejected our request due to an error in our request",
    *_OF_ROUTES,
)
"""Refusals that name nothing, but have details all the same."""
_TEXT = "text/plain; charset=utf-8"
_NO_SNIFFING: Header = (b"x-content-type-options", b"nosniff")
_TOO_LARGE = "ResourceVersionTooLarge"


def of_error(request: Request, error: ApiError) -> Response:
    return response(request, statuses.of_error(error), error.warnings)


def early(request: Request, error: ApiError) -> Response:
    """By a filter, before anybody has looked at what is asked for (``RespondWithError``)."""
    found = of_error(request, error)
    found.add(_NO_SNIFFING)
    return found


def response(request: Request, status: meta_v1_pb2.Status, warnings: Sequence[str] = ()) -> Response:
    form = _form(request)
    parts = request.info.parts
    # What no watch cache has comes from the store, which does not say when it is worth to ask again.
    tidied(status, retries=parts is None or parts.resource != "events")
    if status.message == flows.MESSAGE:
        # Nobody has looked at the request (``tooManyRequests``).
        busy = responses.text(status.code, f"{flows.MESSAGE}\n")
        busy.add((b"retry-after", b"%d" % status.details.retryAfterSeconds))
        return busy
    if _is_of_negotiation(status):
        status.ClearField("details")
    headers: list[Header] = responses.warnings(warnings)
    if status.details.retryAfterSeconds:
        headers.append((b"retry-after", b"%d" % status.details.retryAfterSeconds))
    if is_unauthorized(request, status):
        headers.append(_NO_SNIFFING)
    if form is None:
        body = representations.message(Form(pretty=True), "v1", "Status", status).rstrip()
        return Response(status.code or 500, negotiation.JSON, (body,), headers)
    body = representations.message(form, "v1", "Status", status)
    return Response(status.code or 500, form.media, (body,), headers)


def is_unauthorized(request: Request, status: meta_v1_pb2.Status) -> bool:
    """Whether the user has no right to ask that."""
    return status.code == Forbidden.code and f'User "{request.user.name}" cannot ' in status.message


def unread(request: Request, error: ApiError) -> Response:
    """Nobody can say what the URL of a request names (``WithRequestInfo``)."""
    why = error.message.removesuffix(request.path) + request.target
    text = f'Internal Server Error: "{request.target}": failed to create RequestInfo: {why}'
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(letter, entity)
    return Response(InternalError.code, _TEXT, (f"{text}\n".encode(),), (_NO_SNIFFING,), is_cached=True)


def _form(request: Request) -> Form | None:
    """None: the client takes none that a Status has; it gets one all the same (``WriteRawJSON``)."""
    try:
        return negotiation.of_status(
            request.headers.get("accept", ""), request.query.text("pretty"), request.headers.get("user-agent", "")
        )
    except NotAcceptable:
        return None


def _is_of_negotiation(status: meta_v1_pb2.Status) -> bool:
    """Whether a form is refused by what reads or writes it (``negotiation/errors.go``), not by a route."""
    return status.code in (UnsupportedMediaType.code, NotAcceptable.code) and not status.message.startswith(_OF_ROUTES)


def tidied(status: meta_v1_pb2.Status, *, retries: bool = True) -> meta_v1_pb2.Status:
    """As Kubernetes writes it."""
    if status.reason == ApiError.reason:
        status.ClearField("reason")
    if retries and any(cause.reason == _TOO_LARGE for cause in status.details.causes):
        # Clients of Kubernetes ask again then; kemu's own do as their informers say.
        status.details.retryAfterSeconds = 1
    go_values.trim(status.details)
    if status.message.startswith(_EMPTY_DETAILS):
        status.ClearField("details")
        status.details.SetInParent()
    return status


def name_group(status: meta_v1_pb2.Status, row: Resource) -> None:
    """Name the group of a kind that is stored as one of another group."""
    details = status.details
    if details.kind == row.plural and not details.group:
        details.group = row.group
        status.message = status.message.replace(f'{row.plural} "', f'{row.qualified} "', 1)
