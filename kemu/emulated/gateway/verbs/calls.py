"""What every verb needs."""

from __future__ import annotations

import asyncio
import re
from typing import Any, NamedTuple

from google.protobuf.message import Message

from kemu.emulated.gateway.answers.representations import Representations
from kemu.emulated.gateway.authentication.impersonations import Right
from kemu.emulated.gateway.backends import PATIENCE_S, Backend
from kemu.emulated.gateway.requests import other_forms
from kemu.emulated.gateway.requests.messages import Request
from kemu.emulated.gateway.requests.negotiation import Form
from kemu.emulated.gateway.requests.paths import Path
from kemu.emulated.gateway.settings import Settings
from kemu.emulated.objects import identities, resources, times
from kemu.emulated.objects.custom_kinds import CustomResource
from kemu.emulated.objects.resources import Resource
from kemu.errors import BadRequest, MethodNotAllowed, NotFound
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS, Clock

BY_URL: dict[tuple[str, str], Resource] = {
    (row.api_version, row.plural): row for row in (*resources.RESOURCES, *other_forms.ROWS)
}
"""By API version and plural."""
REMOVED_BY_URL = {(row.api_version, row.plural): row for row in other_forms.REMOVED}
"""The same of removed betas."""


class Call(NamedTuple):
    """A request for a resource."""

    request: Request
    path: Path
    row: Resource
    """Row of the collection that the URL names."""
    shown: Resource
    """The kind that is sent and shown: another one for some subresources."""
    backend: Backend
    settings: Settings
    representations: Representations
    clock: Clock
    closing: asyncio.Event
    """Set when the gateway ends."""
    sessions: Any = None
    """:class:`kemu.emulated.gateway.verbs.sessions.requests.Sessions`."""

    async def ask(self, method: str, message: Message) -> Any:
        """One call of the API server's service. Raises :class:`kemu.emulated.gateway.backends.Refused`."""
        request = self.request
        limit_s = patience_s(request) if "timeout" in request.query.values else PATIENCE_S
        return await self.backend.call(method, message, request.user, limit_s)

    async def look(self, method: str, message: Message) -> Any:
        """The same as the gateway itself, on behalf of a user who may have it. Raises Refused."""
        return await self.backend.call(method, message, identities.ADMINISTRATOR)

    async def require(self, verb: str, subresource: str = "") -> None:
        """What the gateway answers itself is for those who may have it. Raises Forbidden, and Refused."""
        path = self.path
        namespace = path.name if path.resource == "namespaces" and not path.group else path.namespace
        right = Right(verb, path.group, path.resource, namespace, path.name, subresource)
        await self.backend.require(self.request.user, right)

    def form(self) -> Form:
        """How the answer is to be written. Raises :class:`kemu.errors.NotAcceptable`."""
        # Nobody has said how reviews and most parts of objects would look in a Table.
        row, part = self.row, self.path.subresource
        has_table = part in _IN_TABLES and row.group not in _REVIEWS and (row.plural, part) not in _WITHOUT_TABLES
        return self.request.form(has_table)

    def where(self) -> api_pb2.Resource:
        version = self.path.version if isinstance(self.row, CustomResource) else ""
        return api_pb2.Resource(resource=self.row.plural, namespace=self.path.namespace, version=version)

    def now_s(self) -> float:
        """Unix time in the cluster."""
        return self.clock.unix_ns() / SECOND_NS

    def field_selector(self) -> str:
        """Field selector of a list or watch."""
        text = self.request.query.text("fieldSelector")
        other = other_forms.of(self.row) if text else None
        return text if other is None else other.selector(text)

    async def body(self) -> bytes:
        return await self.request.body(self.settings.max_body_bytes)

    def write_options(self) -> api_pb2.WriteOptions:
        query = self.request.query
        if not query.values:
            return api_pb2.WriteOptions(user_agent=self.request.headers.get("user-agent", ""))
        return api_pb2.WriteOptions(
            dry_run=query.texts("dryRun"),
            field_manager=query.text("fieldManager"),
            field_validation=query.text("fieldValidation"),
            user_agent=self.request.agent,
        )


_IN_TABLES = ("", "status", "scale")
_WITHOUT_TABLES = (("resourceclaims", "status"), ("podgroups", "status"))
_REVIEWS = ("authentication.k8s.io", "authorization.k8s.io")
_UNITLESS = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)")


def patience_s(request: Request) -> float:
    """What the client is ready to wait (``parseTimeout``). Raises :class:`kemu.errors.BadRequest`."""
    text = request.query.text("timeout")
    if not text:
        return PATIENCE_S
    try:
        seconds = times.parse_duration(text) / SECOND_NS
    except ValueError:
        what = "missing unit in duration" if _UNITLESS.fullmatch(text) else "invalid duration"
        raise BadRequest(f'invalid timeout specified in the request URL - time: {what} "{text}"') from None
    return min(seconds, PATIENCE_S) if seconds > 0 else PATIENCE_S


def unknown_resource() -> NotFound:
    """As for a URL that no API serves."""
    return NotFound("the server could not find the requested resource")


def wrong_method() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method on the requested resource")
