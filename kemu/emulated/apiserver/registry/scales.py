"""The Scale subresource: how many replicas a workload has, in one form for all kinds (``autoscaling/v1``).

``ScaleREST`` of ``apps/deployment/storage`` and its like.
"""

from __future__ import annotations

from kemu.emulated.apiserver import errors
from kemu.emulated.objects import selectors
from kemu.emulated.objects.resources import Resource
from kemu.emulated.objects.validation import causes, checks
from kemu.errors import Cause, Invalid
from kemu.messages.k8s import apps_v1_pb2, autoscaling_v1_pb2, core_v1_pb2

SCALE = "scale"
PLURALS = ("deployments", "replicasets", "statefulsets", "replicationcontrollers")
"""The kinds that have one."""
RESOURCE = Resource(SCALE, "Scale", "autoscaling/v1", autoscaling_v1_pb2.Scale)

Scaled = apps_v1_pb2.Deployment | apps_v1_pb2.ReplicaSet | apps_v1_pb2.StatefulSet | core_v1_pb2.ReplicationController
"""The kinds that have the subresource scale."""


def of(obj: Scaled, version: str) -> autoscaling_v1_pb2.Scale:
    """``version``: the object's resource version."""
    scale = autoscaling_v1_pb2.Scale()
    metadata, found = scale.metadata, obj.metadata
    metadata.name, metadata.namespace, metadata.uid = found.name, found.namespace, found.uid
    metadata.creationTimestamp.CopyFrom(found.creationTimestamp)
    if version:
        metadata.resourceVersion = version
    scale.spec.replicas = obj.spec.replicas
    scale.status.replicas = obj.status.replicas
    scale.status.selector = _selector(obj)
    return scale


def change(resource: Resource, obj: Scaled, revision: int, wanted: autoscaling_v1_pb2.Scale) -> None:
    """Give ``obj`` the replicas of ``wanted``, a Scale. Raises :class:`kemu.errors.ApiError` where it does not fit."""
    metadata, name = wanted.metadata, obj.metadata.name
    found: list[Cause] = []
    checks.not_negative(wanted.spec.replicas, "spec.replicas", found)
    if found:
        texts = ", ".join(f"{cause.field}: {cause.message}" for cause in found)
        raise Invalid(
            f"Scale.autoscaling {causes.shown(name)} is invalid: {texts}", kind="Scale", name=name, causes=found
        )
    if metadata.uid and metadata.uid != obj.metadata.uid:
        why = f"Precondition failed: UID in precondition: {metadata.uid}, UID in object meta: {obj.metadata.uid}"
        raise errors.conflict(resource, name, why)
    if metadata.resourceVersion and metadata.resourceVersion != str(revision):
        raise errors.modified(resource, name)
    obj.spec.replicas = wanted.spec.replicas


def _selector(obj: Scaled) -> str:
    if isinstance(obj, core_v1_pb2.ReplicationController):
        return ",".join(f"{key}={obj.spec.selector[key]}" for key in sorted(obj.spec.selector))
    found = selectors.compile_labels_field(obj.spec, "selector")
    return ",".join(str(one) for one in sorted(found.requirements, key=lambda one: one.key))
