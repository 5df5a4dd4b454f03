"""Requests that are logged as kube-apiserver counts them (``apiserver/pkg/endpoints/metrics``), where metrics are asked
for: :class:`kemu.runtime.runlog.events.RequestServed`."""

from __future__ import annotations

from kemu import errors
from kemu.emulated.apiserver.authorization import attributes
from kemu.emulated.apiserver.verbs import Answer, Requests
from kemu.emulated.objects import resources
from kemu.messages.v1 import api_pb2
from kemu.runtime.runlog.events import RequestServed

_VERBS = {
    "get": "GET",
    "list": "LIST",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
}
_CREATED = 201


class MeasuredRequests(Requests):
    """Logs each request that was answered, but for those that it cannot read."""

    async def answer(self, verb: str | None, request: attributes.Request | None, by: str) -> Answer:
        start_ns = self._env.clock.now_ns()
        try:
            answer = await super().answer(verb, request, by)
        except errors.ApiError as error:
            self._measure(verb, request, by, start_ns, error.code)
            raise
        self._measure(verb, request, by, start_ns, 0)
        return answer

    def _measure(self, verb: str | None, request: attributes.Request | None, by: str, start_ns: int, code: int) -> None:
        """``code``: 0 where it succeeded."""
        if verb is None or request is None:
            return
        about = attributes.of_request(verb, request)
        if not about:
            return
        one = about[0]
        told = _VERBS[one.verb]
        if isinstance(request, api_pb2.PatchRequest) and request.type == api_pb2.PatchRequest.APPLY:
            told = "APPLY"
        if one.name or told == "POST":
            scope = "resource"
        else:
            scope = "namespace" if one.namespace else "cluster"
        row = resources.BY_PLURAL.get(one.resource)
        self._env.log(
            RequestServed(
                by=by,
                verb=told,
                group=one.group,
                version=row.api_version.rpartition("/")[2] if row is not None else _version(request),
                resource=one.resource,
                subresource=one.subresource,
                scope=scope,
                dry_run="All" if _is_dry(request) else "",
                code=code or (_CREATED if told == "POST" else 200),
                start=start_ns,
            )
        )


def _is_dry(request: object) -> bool:
    options = getattr(request, "options", None)
    return bool(getattr(options, "dry_run", None) or getattr(request, "dry_run", None))


def _version(request: attributes.Request) -> str:
    """Of a custom kind."""
    which = request.list if isinstance(request, api_pb2.DeleteCollectionRequest) else request
    return str(which.resource.version) if hasattr(which, "resource") else ""
