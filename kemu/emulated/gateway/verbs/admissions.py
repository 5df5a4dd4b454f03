"""Asks admission from outside about requests that store nothing: reviews, connections to pods, services and nodes."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.objects.conversion import convert
from kemu.errors import BadRequest
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2

M = TypeVar("M", bound=KubernetesObject)

_OPTIONS = {
    "exec": "PodExecOptions",
    "attach": "PodAttachOptions",
    "portforward": "PodPortForwardOptions",
}
_PROXIES = {"pods": "PodProxyOptions", "services": "ServiceProxyOptions", "nodes": "NodeProxyOptions"}
_STATUSES: dict[str, dict[str, Any]] = {
    "SelfSubjectAccessReview": {"allowed": False},
    "SubjectAccessReview": {"allowed": False},
    "LocalSubjectAccessReview": {"allowed": False},
    "SelfSubjectRulesReview": {"incomplete": False, "nonResourceRules": None, "resourceRules": None},
    "SelfSubjectReview": {"userInfo": {}},
    "TokenReview": {"user": {}},
    "TokenRequest": {"token": "", "expirationTimestamp": None},
}
"""Of reviews that have not been answered yet, as Go writes them."""


async def connect(call: Call) -> None:
    """Before a connection is made. Raises :class:`kemu.emulated.gateway.backends.Refused`."""
    path = call.path
    kind = _OPTIONS.get(path.subresource) or _PROXIES[path.resource]
    found = {"kind": kind, "apiVersion": "v1", **_options(call)}
    request = _request(call, "CONNECT", found)
    await call.ask("Admit", request)
    request.validates = True
    await call.ask("Admit", request)


def _options(call: Call) -> dict[str, Any]:
    path, query = call.path, call.request.query
    if path.subresource == "proxy":
        return {"path": "/" + "/".join(path.rest)} if path.rest else {}
    if path.subresource == "portforward":
        texts = query.texts("ports")
        ports = [int(one) for text in texts for one in text.split(",") if one.isdecimal()]
        return {"ports": ports} if ports else {}
    found: dict[str, Any] = {name: True for name in ("stdin", "stdout", "stderr", "tty") if query.flag(name)}
    if query.text("container"):
        found["container"] = query.text("container")
    if path.subresource == "exec":
        found["command"] = query.texts("command") or None
    return found


class Review:
    """What is posted to be answered; webhooks and policies may change it, then refuse it."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.warnings: list[str] = []

    async def mutate(self, message: M) -> M:
        """As it shall be. Raises :class:`kemu.emulated.gateway.backends.Refused`, and BadRequest."""
        answer = await self._ask(message, validates=False)
        if not answer.object:
            return message
        try:
            found = json.loads(answer.object)
            return convert.from_json(type(message), {key: found[key] for key in found.keys() - {"apiVersion", "kind"}})
        except convert.ConversionError as error:
            raise BadRequest(f"admission has made an object that cannot be read: {error}") from None

    async def validate(self, message: KubernetesObject) -> None:
        """Raises :class:`kemu.emulated.gateway.backends.Refused`."""
        await self._ask(message, validates=True)

    async def _ask(self, message: KubernetesObject, *, validates: bool) -> api_pb2.AdmitResponse:
        row = self._call.shown
        found = {"kind": row.kind, "apiVersion": row.api_version, **convert.to_json(message)}
        found.setdefault("metadata", {})
        found.setdefault("status", _STATUSES[row.kind])
        request = _request(self._call, "CREATE", found)
        request.validates = validates
        answer: api_pb2.AdmitResponse = await self._call.ask("Admit", request)
        self.warnings += answer.warnings
        return answer


def _request(call: Call, operation: str, obj: dict[str, Any]) -> api_pb2.AdmitRequest:
    path = call.path
    return api_pb2.AdmitRequest(
        operation=operation,
        api_version=call.row.api_version,
        resource=path.resource,
        subresource=path.subresource,
        namespace=path.namespace,
        name=path.name,
        object=json.dumps(obj, ensure_ascii=False).encode(),
    )
