"""Refusals over HTTP: a ``Status`` in the form that the client asked for."""

from __future__ import annotations

from kemu.errors import ApiError
from kemu.gateway.answers import representations
from kemu.gateway.answers.responses import Header, Response
from kemu.gateway.requests.messages import Request
from kemu.gateway.requests.negotiation import Form
from kemu.k8s import meta_v1_pb2
from kemu.objects import statuses

_EMPTY_DETAILS = (
    "the server could not find the requested resource",
    "the server does not allow this method on the",
    "the server rejected our request due to an error in our request",
)


def of_error(request: Request, error: ApiError) -> Response:
    return response(request, statuses.of_error(error))


def response(request: Request, status: meta_v1_pb2.Status) -> Response:
    try:
        form = request.form()
    except ApiError:
        form = Form()
    headers: list[Header] = []
    if status.details.retryAfterSeconds:
        headers.append((b"retry-after", b"%d" % status.details.retryAfterSeconds))
    body = representations.message(form, "v1", "Status", tidied(status))
    return Response(status.code or 500, form.media, (body,), headers)


def tidied(status: meta_v1_pb2.Status) -> meta_v1_pb2.Status:
    """As Kubernetes writes it."""
    if status.reason == ApiError.reason:
        status.ClearField("reason")
    for cause in status.details.causes:
        if not cause.field:
            cause.ClearField("field")
    if status.message.startswith(_EMPTY_DETAILS):
        status.ClearField("details")
        status.details.SetInParent()
    return status
