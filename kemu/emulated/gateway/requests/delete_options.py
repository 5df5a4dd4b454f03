"""The options of deletions, as they stand in bodies (``metav1.DeleteOptions``)."""

from __future__ import annotations

from kemu.emulated.gateway.requests import bodies, documents, negotiation
from kemu.emulated.gateway.requests.messages import Request
from kemu.emulated.objects.managed_fields import go_decoding
from kemu.emulated.objects.managed_fields.schemas import LIST, STRUCT, Field, Type
from kemu.emulated.objects.validation import causes
from kemu.errors import BadRequest
from kemu.messages.k8s import meta_v1_pb2

_KIND = "DeleteOptions"
POLICIES = ("Foreground", "Background", "Orphan")
_SCHEME = "pkg/runtime/scheme.go:111"
"""As Go calls the table of kinds."""


def read(request: Request, data: bytes) -> meta_v1_pb2.DeleteOptions:
    """Raises :class:`kemu.errors.ApiError`."""
    body = bodies.decode(request, data)
    if not body.content_type:
        _check_kind(body.api_version, body.kind)
        return bodies.parse(body, meta_v1_pb2.DeleteOptions)
    found = documents.mapping(body.data, body.content_type)
    _check_kind(found.get("apiVersion") or "", found.get("kind") or "")
    if problem := go_decoding.of_json(_OPTIONS, found, _KIND):
        raise BadRequest(problem)
    return bodies.parse(
        body._replace(data=documents.text(found), content_type=negotiation.JSON), meta_v1_pb2.DeleteOptions
    )


def _check_kind(api_version: str, kind: str) -> None:
    """Raises :class:`kemu.errors.BadRequest`. Options are the same in every version."""
    if api_version.count("/") > 1:
        raise BadRequest(f"unexpected GroupVersion string: {api_version}")
    if kind and kind != _KIND:
        raise BadRequest(f'no kind "{kind}" is registered for version "{api_version or "v1"}" in scheme "{_SCHEME}"')


def check(options: meta_v1_pb2.DeleteOptions) -> None:
    """Raises :class:`kemu.errors.Invalid` (``ValidateDeleteOptions``)."""
    found = []
    has_policy, policy = options.HasField("propagationPolicy"), options.propagationPolicy
    if has_policy and options.HasField("orphanDependents"):
        why = "orphanDependents and deletionPropagation cannot be both set"
        found.append(causes.invalid("propagationPolicy", policy, why))
    if has_policy and policy not in POLICIES:
        found.append(causes.not_supported("propagationPolicy", policy, (*POLICIES, "nil")))
    found += causes.check_dry_run(options.dryRun)
    if found:
        raise causes.error_of_options(_KIND, found)


def _field(kind: str | Type, go: str) -> Field:
    return Field(kind, False, None, False, None, True, (), "", False, (), go, "")


_PRECONDITIONS = Type(
    STRUCT, fields={"uid": _field("string", "types.UID"), "resourceVersion": _field("string", "string")}
)
_OPTIONS = Type(
    STRUCT,
    fields={
        "kind": _field("string", "string"),
        "apiVersion": _field("string", "string"),
        "gracePeriodSeconds": _field("numeric", "int64"),
        "preconditions": _field(_PRECONDITIONS, "v1.Preconditions"),
        "orphanDependents": _field("boolean", "bool"),
        "propagationPolicy": _field("string", "v1.DeletionPropagation"),
        "dryRun": _field(Type(LIST, is_atomic=True, element="string"), "[]string"),
        "ignoreStoreReadErrorWithClusterBreakingPotential": _field("boolean", "bool"),
    },
)
