"""One request, as admission from outside sees it (``admission.Attributes``)."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple, cast

from kemu.emulated.apiserver import dry_runs
from kemu.emulated.apiserver.authorization import attributes as accesses
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.identities import User
from kemu.emulated.objects.managed_fields import schemas
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s.objects import KubernetesObject
from kemu.messages.v1 import api_pb2

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"

OPTIONS = {CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions"}


class Asking:
    """The request that is being carried out: who asks, with which options, and what there is to tell."""

    __slots__ = ("annotations", "by", "request", "verb", "warnings")

    def __init__(self, by: str, verb: str, request: accesses.Request | api_pb2.AdmitRequest) -> None:
        self.by = by
        """The caller, as the service knows it."""
        self.verb = verb
        self.request = request
        self.warnings: list[str] = []
        self.annotations: dict[str, str] = {}
        """For an audit event."""


ASKING: ContextVar[Asking | None] = ContextVar("asking", default=None)
"""None: the server writes on its own behalf, which nobody outside is asked about."""


class Matched(NamedTuple):
    """As what a request matches rules."""

    group: str
    version: str


class Attributes:
    """``obj`` is what is to be stored; it changes as mutations are applied."""

    __slots__ = (
        "_old_plain",
        "_plain",
        "asking",
        "dry_run",
        "name",
        "namespace",
        "obj",
        "old",
        "old_views",
        "operation",
        "options",
        "resource",
        "subject",
        "subresource",
        "user",
        "views",
    )  # fmt: skip

    def __init__(
        self,
        asking: Asking,
        user: User,
        operation: str,
        resource: Resource,
        subresource: str,
        namespace: str,
        name: str,
        obj: KubernetesObject | None,
        old: KubernetesObject | None,
        subject: tuple[str, str] | None = None,
        plain: dict[str, Any] | None = None,
    ) -> None:
        """``subject``: API version and kind of the objects, where they are not those of the resource (Scale)."""
        self.asking = asking
        self.user = user
        self.operation = operation
        self.resource = resource
        self.subresource = subresource
        self.namespace = name if resource.plural == "namespaces" else namespace
        self.name = name
        self.obj = obj
        self.old = old
        self.subject = subject or (resource.api_version, resource.kind)
        self.dry_run = dry_runs.ACTIVE.get()
        self.options = _options(operation, asking)
        self._plain = plain
        self._old_plain: dict[str, Any] | None = None
        self.views: dict[Matched, dict[str, Any]] = {}
        """The object in other versions, and so ``old_views``; see :mod:`.versions`."""
        self.old_views: dict[Matched, dict[str, Any]] = {}

    @property
    def plural(self) -> str:
        return self.resource.collection

    @property
    def group(self) -> str:
        return self.resource.group

    @property
    def version(self) -> str:
        return self.resource.api_version.rpartition("/")[2]

    @property
    def kind(self) -> tuple[str, str, str]:
        """Group, version and kind of the objects."""
        group, _, version = self.subject[0].rpartition("/")
        return group, version, self.subject[1]

    @property
    def plain(self) -> dict[str, Any] | None:
        """The object as JSON; not to be changed."""
        if self._plain is None and self.obj is not None:
            self._plain = as_go_writes(self.obj)
        return self._plain

    @property
    def old_plain(self) -> dict[str, Any] | None:
        if self._old_plain is None and self.old is not None:
            self._old_plain = as_go_writes(self.old)
        return self._old_plain

    def differs(self, matched: Matched) -> bool:
        """Whether the objects are others in that version."""
        is_own = (self.resource.api_version, self.resource.kind) == self.subject
        return is_own and (matched.group, matched.version) != (self.group, self.version)

    def seen(self, matched: Matched) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """Object and old object as who asks in that version sees them, once they are prepared."""
        if not self.differs(matched):
            return self.plain, self.old_plain
        return self.views.get(matched), self.old_views.get(matched)

    def touched(self) -> None:
        """``obj`` has changed."""
        self._plain = None
        self.views.clear()

    def annotate(self, key: str, value: str) -> None:
        self.asking.annotations.setdefault(key, value)

    def warn(self, text: str) -> None:
        self.asking.warnings.append(text)


def as_go_writes(obj: KubernetesObject) -> dict[str, Any]:
    """JSON as Kubernetes has it: patches and expressions meet also what is set to nothing."""
    plain = convert.to_manifest(obj)
    name = schemas.find(plain["apiVersion"], plain["kind"])
    return plain if name is None else cast(dict[str, Any], schemas.as_go_writes(name, plain))


def _options(operation: str, asking: Asking) -> dict[str, Any] | None:
    kind = OPTIONS.get(operation)
    if kind is None:
        return None
    request: Any = asking.request
    found: dict[str, Any] = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if isinstance(request, api_pb2.DeleteCollectionRequest):
        request = request.delete
    if isinstance(request, api_pb2.DeleteRequest | api_pb2.EvictRequest):
        if request.HasField("grace_period_seconds"):
            found["gracePeriodSeconds"] = request.grace_period_seconds
        wanted = request.preconditions
        stated = {"uid": wanted.uid, "resourceVersion": wanted.resource_version}
        if any(stated.values()):
            found["preconditions"] = {key: value for key, value in stated.items() if value}
        if isinstance(request, api_pb2.DeleteRequest) and request.propagation_policy:
            found["propagationPolicy"] = request.propagation_policy
        if request.dry_run:
            found["dryRun"] = [*request.dry_run]
        return found
    options = getattr(request, "options", None)
    if options is not None:
        if options.dry_run:
            found["dryRun"] = [*options.dry_run]
        if options.field_manager:
            found["fieldManager"] = options.field_manager
        if options.field_validation:
            found["fieldValidation"] = options.field_validation
    return found
