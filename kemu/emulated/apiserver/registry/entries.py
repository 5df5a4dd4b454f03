"""Objects as they come and as they are kept: bytes, names, namespaces, and the metadata that only the server writes."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from kemu import errors as kemu_errors
from kemu.emulated.apiserver import dry_runs, request_warnings
from kemu.emulated.apiserver.storage import Entry
from kemu.emulated.objects import resources
from kemu.messages.k8s import meta_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject


def decode(resource: resources.Resource, data: bytes) -> KubernetesObject:
    """Raises :class:`kemu.errors.BadRequest`."""
    try:
        return resource.message.FromString(data)
    except DecodeError as error:
        raise kemu_errors.BadRequest(f"the object is not a {resource.kind}: {error}") from None


def parse(resource: resources.Resource, entry: Entry) -> KubernetesObject:
    """The object in an entry; changing it changes nothing else. Its resource version is empty."""
    return resource.message.FromString(entry.value)


def addressed(resource: resources.Resource, namespace: str, name: str) -> str:
    """The namespace of the object that a request names. Raises :class:`kemu.errors.BadRequest` if it is incomplete."""
    if not name:
        raise kemu_errors.BadRequest("name may not be empty")
    if not resource.namespaced:
        return ""
    if not namespace:
        raise kemu_errors.BadRequest("an empty namespace may not be set when a resource name is provided")
    return namespace


def drop_double_owners(metadata: meta_v1_pb2.ObjectMeta, *, is_patch: bool = False) -> None:
    """Equal owner references become one, with a warning (``dedupOwnerReferencesAndAddWarning``); those of a patch are
    looked at after admission."""
    kept: list[meta_v1_pb2.OwnerReference] = []
    double = []
    for one in metadata.ownerReferences:
        if one in kept:
            double.append(one.uid)
        else:
            kept.append(one)
    if not double:
        return
    del metadata.ownerReferences[:]
    metadata.ownerReferences.extend(kept)
    when = " after mutating admission happens" if is_patch else ""
    request_warnings.warn(
        f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and "
        f"may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        f"{', '.join(double)}"
    )


def refuse_revision(stated: str) -> None:
    """As the storage of Kubernetes: after validation, and not where it only pretends to write. What is no number, it
    does not see."""
    if not dry_runs.ACTIVE.get() and stated.isascii() and stated.isdigit() and int(stated):
        raise kemu_errors.ApiError("resourceVersion should not be set on objects to be created")


def place(resource: resources.Resource, metadata: meta_v1_pb2.ObjectMeta, namespace: str) -> None:
    """Bring the namespace in an object and the one in its request together."""
    if not resource.namespaced:
        metadata.ClearField("namespace")
    elif not metadata.namespace:
        if not namespace:
            raise kemu_errors.BadRequest("an empty namespace may not be set during creation")
        metadata.namespace = namespace
    elif namespace and namespace != metadata.namespace:
        raise kemu_errors.BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def keep_system_fields(new: meta_v1_pb2.ObjectMeta, old: meta_v1_pb2.ObjectMeta) -> None:
    """What only the server sets stays (``BeforeUpdate``). Times that a client sent in their place are not looked at;
    what else it sent is judged by validation."""
    for field in ("uid", "deletionGracePeriodSeconds"):
        if not new.HasField(field) and old.HasField(field):
            setattr(new, field, getattr(old, field))
    for field in ("creationTimestamp", "deletionTimestamp"):
        if old.HasField(field):
            getattr(new, field).CopyFrom(getattr(old, field))
    if old.HasField("generation"):
        new.generation = old.generation
    elif new.HasField("generation"):
        new.ClearField("generation")
    new.ClearField("selfLink")


def keep_managed_fields(new: meta_v1_pb2.ObjectMeta, old: meta_v1_pb2.ObjectMeta) -> None:
    """They are not lost by accident: only a list of one empty entry clears them (``fieldmanager.Update``)."""
    sent = new.managedFields
    if not sent:
        if old.managedFields:
            sent.extend(old.managedFields)
    elif len(sent) == 1 and not sent[0].ListFields():
        del sent[:]


def check_name(name: str, in_url: str) -> None:
    """``checkName`` of ``endpoints/handlers``. Raises :class:`kemu.errors.BadRequest`."""
    if not in_url or name == in_url:
        return
    if not name:
        why = f"the name of the object ({in_url} based on URL) was undeterminable: name must be provided"
        raise kemu_errors.BadRequest(why)
    raise kemu_errors.BadRequest(f"the name of the object ({name}) does not match the name on the URL ({in_url})")


def check_address(metadata: meta_v1_pb2.ObjectMeta, namespace: str, in_url: str) -> None:
    """The same, and of the namespace. Raises :class:`kemu.errors.BadRequest`."""
    if metadata.namespace and metadata.namespace != namespace:
        why = "the namespace of the provided object does not match the namespace sent on the request"
        raise kemu_errors.BadRequest(why)
    check_name(metadata.name, in_url)
