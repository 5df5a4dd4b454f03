"""Refusals in Kubernetes' own words, and how they travel.

The texts are those of ``k8s.io/apimachinery/pkg/api/errors``. An :class:`~kemu.errors.ApiError` leaves the server as
the bytes of a ``metav1.Status``: in ``Reply.error`` and ``WatchEvent.error``, and, for unary calls, inside a
``google.rpc.Status`` beside a gRPC status code.
"""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from kemu import errors
from kemu.emulated.apiserver import dry_runs
from kemu.emulated.objects import statuses
from kemu.emulated.objects.resources import Resource
from kemu.errors import ApiError, Cause

DETAILS_KEY = "grpc-status-details-bin"
"""The trailing metadata key under which gRPC carries a ``google.rpc.Status``."""
WARNING_KEY = "kemu-warning-bin"
"""And a warning, each."""
DOMAIN = "kubernetes.io"
"""``ErrorInfo.domain`` of every refusal."""


# Constructors -------------------------------------------------------------------------------------------------------


def not_found(resource: Resource, name: str) -> errors.NotFound:
    return errors.NotFound(f'{resource.qualified} "{name}" not found', kind=named(resource), name=name)


def already_exists(resource: Resource, name: str, *, is_generated: bool = False) -> errors.AlreadyExists:
    """``is_generated``: the object has a ``generateName``, whoever chose its name (``CheckGeneratedNameError``)."""
    text = f'{resource.qualified} "{name}" already exists'
    if is_generated:
        text += ", the server was not able to generate a unique name for the object"
    return errors.AlreadyExists(text, kind=named(resource), name=name, retry_after_s=int(is_generated))


def conflict(resource: Resource, name: str, why: str, subresource: str = "") -> errors.Conflict:
    what = f"{resource.collection}/{subresource}" if subresource else resource.collection
    qualified = f"{what}.{resource.group}" if resource.group else what
    return errors.Conflict(
        f'Operation cannot be fulfilled on {qualified} "{name}": {why}', kind=named(resource, what), name=name
    )


def conflict_of_kind(resource: Resource, name: str, why: str) -> errors.Conflict:
    """The conflict of a delete: ``rest.BeforeDelete`` names the kind where others name the plural."""
    qualified = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    text = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    return errors.Conflict(text, kind=named(resource, resource.kind), name=name)


def modified(resource: Resource, name: str) -> errors.Conflict:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


_PLACES = {
    "/registry/endpoints/": "/registry/services/endpoints/",
    "/registry/services/": "/registry/services/specs/",
    "/registry/nodes/": "/registry/minions/",
    "/registry/replicationcontrollers/": "/registry/controllers/",
    "/registry/ingresses/": "/registry/ingress/",
}
"""Where Kubernetes keeps what it once called by other names (``SpecialDefaultResourcePrefixes``)."""


def _key(key: bytes) -> str:
    """As Kubernetes has it."""
    text = key.decode()
    for own, theirs in _PLACES.items():
        if text.startswith(own):
            text = theirs + text.removeprefix(own)
            break
    # What only pretends to write knows no prefix (``DryRunnableStorage``).
    return text.removeprefix("/registry") if dry_runs.ACTIVE.get() else text


def wrong_uid(resource: Resource, key: bytes, name: str, wanted: str, uid: str, subresource: str = "") -> ApiError:
    """The precondition on the UID failed, as ``storage.NewInvalidObjError`` words it."""
    why = (
        f"StorageError: invalid object, Code: 4, Key: {_key(key)}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
    )
    return conflict(resource, name, why, subresource)


def no_generations(name: str) -> errors.BadRequest:
    """A binding of that pod has a precondition which this server cannot judge."""
    return errors.BadRequest(
        f'the binding of pod "{name}" states a bind generation, but this API server counts none: it needs '
        "bindCheck: generation"
    )


def forbidden(resource: Resource, name: str, why: str, causes: Sequence[Cause] = ()) -> errors.Forbidden:
    text = f'{resource.qualified} "{name}" is forbidden: {why}'
    return errors.Forbidden(text, kind=named(resource), name=name, causes=causes)


def too_old(revision: int, oldest: int) -> errors.Gone:
    return errors.Gone(f"too old resource version: {revision} ({oldest})")


def too_large(revision: int, current: int) -> errors.ServerTimeout:
    """Clients of Kubernetes ask again after a second, ten times; kemu's, which know no ``Retry-After`` but of what was
    not done, do as their informers say."""
    message = f"Timeout: Too large resource version: {revision}, current: {current}"
    return errors.ServerTimeout(message, causes=(Cause("", "ResourceVersionTooLarge", "Too large resource version"),))


def entity_too_large(limit_bytes: int) -> errors.RequestEntityTooLarge:
    return errors.RequestEntityTooLarge(f"Request entity too large: limit is {limit_bytes}")


_REFUSALS = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.UNIMPLEMENTED,
)
"""With these codes the store has answered, and the same request would get the same answer again."""


def of_store(error: grpc.aio.AioRpcError) -> ApiError:
    """What a client is told when a call to the store has failed.

    A refusal such as ``etcdserver: request is too large`` is passed on in the store's own words, with code 500 and no
    reason (``responsewriters.ErrorToAPIStatus``). So is anything else, but then it is unknown whether the
    request was carried out.
    """
    code, details = error.code(), error.details()
    if code in _REFUSALS:
        return ApiError(details or code.name)
    name = "".join(word.capitalize() for word in code.name.split("_"))
    return errors.OutcomeUnknown(f"rpc error: code = {name} desc = {details}")


def timed_out(*, is_read: bool) -> errors.ServerTimeout:
    """The time of a request is over: as ``filters/timeout.go`` says it for reads, ``finisher`` for writes."""
    if is_read:
        return errors.ServerTimeout("Timeout: request did not complete within the allotted timeout")
    text = "Timeout: request did not complete within requested timeout - context deadline exceeded"
    return errors.ServerTimeout(text)


def named(resource: Resource, what: str = "") -> str:
    """What a refusal is about: a plural, with its group where the plural alone does not say it."""
    what = what or resource.collection
    return what if resource.collection == resource.plural else f"{what}.{resource.group}"


# Encodings ----------------------------------------------------------------------------------------------------------


def encode(error: ApiError) -> bytes:
    return statuses.of_error(error).SerializeToString(deterministic=True)


def grpc_code(error: ApiError) -> grpc.StatusCode:
    return grpc.StatusCode[error.grpc_code]


def trailing_metadata(error: ApiError) -> tuple[tuple[str, bytes], ...]:
    """``google.rpc.Status`` with the reason, the fields that are wrong, when to try again, and the metav1 Status."""
    status = status_pb2.Status(code=grpc_code(error).value[0], message=error.message)
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN)
    for key, value in (("kind", error.kind), ("name", error.name)):
        if value:
            info.metadata[key] = value
    details: list[any_pb2.Any] = [_any(info)]
    if error.causes:
        request = error_details_pb2.BadRequest()
        for cause in error.causes:
            request.field_violations.add(field=cause.field, description=cause.message, reason=cause.reason)
        details.append(_any(request))
    if error.retry_after_s:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.seconds = error.retry_after_s
        details.append(_any(retry))
    details.append(_any(statuses.of_error(error)))
    status.details.extend(details)
    warnings = [(WARNING_KEY, text.encode()) for text in error.warnings]
    return ((DETAILS_KEY, status.SerializeToString(deterministic=True)), *warnings)


def _any(message: object) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message, deterministic=True)  # type: ignore[arg-type]
    return packed
