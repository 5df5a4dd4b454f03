"""Which flow schema and priority level a request belongs to (``util/flowcontrol/rule.go``), as headers tell it.

The schemas are those in the cluster. They only classify: how many requests are served at a time is the same for all
levels (:mod:`kemu.emulated.apiserver.flows`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kemu.emulated.apiserver.flows import SEATS
from kemu.emulated.gateway.answers.responses import Header
from kemu.emulated.gateway.backends import Backend, Refused
from kemu.emulated.gateway.requests.messages import Request
from kemu.emulated.objects import identities
from kemu.errors import ApiError
from kemu.messages.k8s import flowcontrol_v1_pb2
from kemu.messages.v1 import api_pb2
from kemu.runtime.env import SECOND_NS, Clock

GROUP = "flowcontrol.apiserver.k8s.io"
_SCHEMA, _LEVEL = b"x-kubernetes-pf-flowschema-uid", b"x-kubernetes-pf-prioritylevel-uid"
FRESH_NS = 60 * SECOND_NS
"""So long what is known counts, unless a client changes it: then it is read anew."""
_REMEMBERED = 4096
"""Requests whose schema is known."""


class _Digest(NamedTuple):
    """What of a request schemas look at."""

    user: identities.User
    verb: str
    group: str
    resource: str
    """With the subresource; empty: the request is for ``path``."""
    namespace: str
    path: str


class Flows:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._schemas: list[tuple[flowcontrol_v1_pb2.FlowSchema, Sequence[Header]]] = []
        """In the order in which they are asked, with the headers of their requests."""
        self._known: dict[_Digest, Sequence[Header]] = {}
        self.seats: Mapping[str, int] = {}
        """Of each priority level, by name: its share of all seats."""
        self._read_ns: int | None = None
        self._reading: asyncio.Task[None] | None = None

    def changed(self) -> None:
        """A client has written a schema or a level."""
        self._read_ns = None

    async def headers(self, request: Request, backend: Backend) -> Sequence[Header]:
        """None where the cluster has no schema for the request."""
        now_ns = self._clock.now_ns()
        if self._read_ns is None or now_ns - self._read_ns > FRESH_NS:
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read(backend), name="read flow schemas")
            if self._read_ns is None:
                await asyncio.shield(self._reading)
        digest = _digest(request)
        found = self._known.get(digest)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[digest] = self._find(digest)
        return found

    def _find(self, digest: _Digest) -> Sequence[Header]:
        for schema, headers in self._schemas:
            if any(_matches(digest, rule) for rule in schema.spec.rules):
                return headers
        return ()

    async def _read(self, backend: Backend) -> None:
        self._read_ns = self._clock.now_ns()
        with contextlib.suppress(Refused, ApiError):
            listed = await self._list(backend, "prioritylevelconfigurations")
            levels = list(map(flowcontrol_v1_pb2.PriorityLevelConfiguration.FromString, listed))
            uids = {one.metadata.name: one.metadata.uid for one in levels}
            self.seats = _seats(levels)
            schemas = list(map(flowcontrol_v1_pb2.FlowSchema.FromString, await self._list(backend, "flowschemas")))
            schemas.sort(key=lambda one: (one.spec.matchingPrecedence, one.metadata.name))
            self._schemas = [
                (one, ((_SCHEMA, one.metadata.uid.encode()), (_LEVEL, uids[level].encode())))
                for one in schemas
                # One that leads nowhere counts for nothing (``digestFlowSchemasLocked``).
                if (level := one.spec.priorityLevelConfiguration.name) in uids
            ]
            self._known.clear()

    async def _list(self, backend: Backend, plural: str) -> Sequence[bytes]:
        request = api_pb2.ListRequest(resource=api_pb2.Resource(resource=plural))
        found: Sequence[bytes] = (await backend.call("List", request, identities.ADMINISTRATOR)).items
        return found


def _seats(levels: Sequence[flowcontrol_v1_pb2.PriorityLevelConfiguration]) -> dict[str, int]:
    """Nominal ones (``updateConcurrencyLocked``): each level's share of the seats of an API server, rounded up."""
    shares = {
        one.metadata.name: (one.spec.exempt if one.spec.type == "Exempt" else one.spec.limited).nominalConcurrencyShares
        for one in levels
    }
    whole = sum(shares.values()) or 1
    return {name: -(-SEATS * share // whole) for name, share in shares.items()}


def _digest(request: Request) -> _Digest:
    info = request.info
    parts = info.parts
    if parts is None:
        return _Digest(request.user, info.verb, "", "", "", request.path)
    resource = f"{parts.resource}/{parts.subresource}" if parts.subresource else parts.resource
    # The namespace of a namespace is itself, as in RequestInfo.
    namespace = parts.name if parts.resource == "namespaces" and not parts.group else parts.namespace
    return _Digest(request.user, info.verb, parts.group, resource, namespace, "")


def _matches(digest: _Digest, rule: flowcontrol_v1_pb2.PolicyRulesWithSubjects) -> bool:
    if not any(_is_subject(digest.user, one) for one in rule.subjects):
        return False
    if digest.resource:
        return any(_has_resource(digest, one) for one in rule.resourceRules)
    return any(_holds(digest.verb, one.verbs) and _has_path(digest.path, one) for one in rule.nonResourceRules)


def _is_subject(user: identities.User, subject: flowcontrol_v1_pb2.Subject) -> bool:
    if subject.kind == "User":
        return subject.user.name in ("*", user.name)
    if subject.kind == "Group":
        return subject.group.name == "*" or subject.group.name in user.groups
    account = subject.serviceAccount
    prefix = f"{identities.SERVICE_ACCOUNT_PREFIX}{account.namespace}:"
    return user.name.startswith(prefix) if account.name == "*" else user.name == f"{prefix}{account.name}"


def _holds(value: str, listed: Sequence[str]) -> bool:
    return value in listed or "*" in listed


def _has_resource(digest: _Digest, rule: flowcontrol_v1_pb2.ResourcePolicyRule) -> bool:
    return (
        _holds(digest.verb, rule.verbs)
        and _holds(digest.resource, rule.resources)
        and _holds(digest.group, rule.apiGroups)
        and (_holds(digest.namespace, rule.namespaces) if digest.namespace else rule.clusterScope)
    )


def _has_path(path: str, rule: flowcontrol_v1_pb2.NonResourcePolicyRule) -> bool:
    """``/healthz`` is meant with all that is below it."""
    for url in rule.nonResourceURLs:
        prefix = url.removesuffix("*")
        if url in ("*", path) or path.startswith(prefix if prefix.endswith("/") else f"{prefix}/"):
            return True
    return False
