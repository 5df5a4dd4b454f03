"""What a request is to a fault: who asks for what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib import parse

from kemu.emulated.gateway.requests import paths
from kemu.errors import ApiError

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_SERVERS = "/servers/"


class Asked(NamedTuple):
    """Who asks for what. Of requests that name no resource, only agent and verb are known."""

    agent: str
    """The program: what stands before the first space of User-Agent."""
    verb: str
    """As in RBAC: ``get list watch create update patch delete deletecollection``."""
    resource: str
    """``pods``, ``deployments/status``; empty: none, as of ``/version``."""
    namespace: str
    name: str
    group: str = ""

    @property
    def qualified(self) -> str:
        """As messages name the resource: ``deployments.apps``."""
        resource = self.resource.partition("/")[0]
        return f"{resource}.{self.group}" if self.group else resource

    @property
    def is_watch(self) -> bool:
        return self.verb == "watch"

    @property
    def is_read(self) -> bool:
        return self.verb in ("get", "list")


def of(scope: Mapping[str, Any]) -> Asked:
    """Of a request as ASGI has it."""
    agent = ""
    for key, value in scope["headers"]:
        if key.lower() == b"user-agent":
            agent = value.decode("latin-1")
            break
    path: str = scope["path"]
    if path.startswith(_SERVERS):
        path = "/" + path.removeprefix(_SERVERS).partition("/")[2]
    method: str = scope["method"]
    try:
        found = paths.parse(path)
    except ApiError:
        found = None
    agent = agent.partition(" ")[0]
    if found is None:
        return Asked(agent, _VERBS.get(method, method.lower()), "", "", "")
    query = dict(parse.parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    name = found.name
    if method in ("GET", "HEAD"):
        watches = found.watches or query.get("watch", "").lower() in ("1", "true", "t")
        verb = "watch" if watches and not name else "get" if name else "list"
        if not name:
            # Watches and lists of one object name it so (RequestInfoFactory does the same).
            name = _named(query.get("fieldSelector", ""))
    elif method == "DELETE":
        verb = "delete" if name else "deletecollection"
    else:
        verb = _VERBS.get(method, method.lower())
    resource = f"{found.resource}/{found.subresource}" if found.subresource else found.resource
    return Asked(agent, verb, resource, found.namespace, name, found.group)


def _named(field_selector: str) -> str:
    for term in field_selector.split(","):
        key, _, value = term.partition("=")
        if key == "metadata.name":
            return value.lstrip("=")
    return ""
