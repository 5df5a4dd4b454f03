"""What a request asks for, read once from method and URL (``RequestInfo`` of ``apiserver/pkg/endpoints/request``)."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, NamedTuple

from kemu.emulated.gateway.requests import paths
from kemu.emulated.gateway.requests.paths import Path
from kemu.emulated.gateway.requests.queries import Query
from kemu.errors import ApiError

_KEY = "kemu.request"
"""In the ASGI scope of a request: its RequestInfo."""
_SERVERS = "/servers/"
"""Before the number of an API server that a client chooses."""
_NO_QUERY = Query("")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


class RequestInfo(NamedTuple):
    method: str
    server: str | None
    """The number of the API server that the URL chooses, as it stands there; None: any."""
    path: str
    """The rest of the URL, without the query."""
    query: Query
    parts: Path | None
    """Parts of a resource; None: the URL names none."""
    verb: str
    """As in RBAC: ``get list watch create update patch delete deletecollection``; without a resource, the method."""
    problem: ApiError | None
    """Why it cannot be read."""


def of(scope: MutableMapping[str, Any]) -> RequestInfo:
    """What a request is about, as ASGI has it."""
    found: RequestInfo | None = scope.get(_KEY)
    if found is None:
        found = scope[_KEY] = _read(scope["method"], scope["path"], scope["query_string"].decode("latin-1"))
    return found


def changed(scope: MutableMapping[str, Any], **parts: Any) -> dict[str, Any]:
    """The scope of another request in the place of this one."""
    found = {**scope, **parts}
    found.pop(_KEY, None)
    return found


def _read(method: str, path: str, query_text: str) -> RequestInfo:
    server: str | None = None
    if path.startswith(_SERVERS):
        server, _, rest = path.removeprefix(_SERVERS).partition("/")
        path = f"/{rest}"
    query, parts, problem = _NO_QUERY, None, None
    try:
        if query_text:
            query = Query(query_text)
        parts = paths.parse(path)
    except ApiError as error:
        problem = error
    return RequestInfo(method, server, path, query, parts, _verb(method, parts, query), problem)


def _verb(method: str, parts: Path | None, query: Query) -> str:
    if parts is None:
        return method.lower()
    if parts.watches:
        return "watch"
    if method in ("GET", "HEAD"):
        return "get" if parts.name else "watch" if query.flag("watch") else "list"
    if method == "DELETE":
        return "delete" if parts.name else "deletecollection"
    return _VERBS.get(method, "")
