"""What the routes of an API server take and give, which is judged before anything else of a request is read.

kube-apiserver registers a route for each verb of each resource (``endpoints/installer.go``). Its router, that of
``go-restful``, looks at media types by name alone: parameters, qualities and ``application/*`` mean nothing to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.gateway.requests import bodies, negotiation
from kemu.emulated.gateway.requests.messages import Request
from kemu.errors import MethodNotAllowed, NotAcceptable, UnsupportedMediaType

STREAMED = (*negotiation.SERVED, f"{negotiation.JSON};stream=watch", f"{negotiation.PROTOBUF};stream=watch")
"""What lists and watches give."""
_OCTETS = "application/octet-stream"
"""What a body is of which nothing is said."""
ANY = ("*/*",)


def of_part(subresource: str) -> Sequence[str]:
    """What the routes of a subresource give."""
    if subresource in ("attach", "exec", "portforward", "proxy"):
        return ANY
    return ("text/plain", *negotiation.SERVED) if subresource == "log" else negotiation.SERVED


def check(request: Request, produced: Sequence[str]) -> None:
    """``produced``: what the route gives. Raises UnsupportedMediaType and NotAcceptable."""
    headers = request.headers
    if request.method == "PATCH":
        check_patch(headers.get("content-type", ""))
    accept = headers.get("accept", "")
    if accept and not _names_one(accept, produced):
        raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {', '.join(produced)}")


def check_document(request: Request, produced: Sequence[str] = (negotiation.JSON,)) -> None:
    """The same of what is only read. Raises MethodNotAllowed, too."""
    if request.method != "GET":
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    check(request, produced)


def check_patch(content_type: str) -> None:
    """Raises UnsupportedMediaType."""
    if not _names_one(content_type or _OCTETS, tuple(bodies.PATCH_TYPES), is_accept=False):
        raise UnsupportedMediaType("415: Unsupported Media Type")


def _names_one(stated: str, known: Sequence[str], is_accept: bool = True) -> bool:
    if "*/*" in known:
        return True
    for clause in stated.split(","):
        media = clause.partition(";")[0].strip()
        if media in known or (is_accept and media == "*/*"):
            return True
    return False
