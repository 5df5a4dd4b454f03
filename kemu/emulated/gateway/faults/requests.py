"""What a request is to a fault: who asks for what."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, NamedTuple

from kemu.emulated.gateway.requests import request_infos


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


def of(scope: MutableMapping[str, Any]) -> Asked:
    """What a request asks for, as ASGI has it."""
    agent = ""
    for key, value in scope["headers"]:
        if key.lower() == b"user-agent":
            agent = value.decode("latin-1").partition(" ")[0]
            break
    info = request_infos.of(scope)
    found = info.parts
    if found is None:
        return Asked(agent, info.verb, "", "", "")
    name = found.name
    if info.verb in ("list", "watch") and not name:
        # Watches and lists of one object name it so (RequestInfoFactory does the same).
        name = _named(info.query.text("fieldSelector"))
    resource = f"{found.resource}/{found.subresource}" if found.subresource else found.resource
    return Asked(agent, info.verb, resource, found.namespace, name, found.group)


def _named(field_selector: str) -> str:
    for term in field_selector.split(","):
        key, _, value = term.partition("=")
        if key == "metadata.name":
            return value.lstrip("=")
    return ""
