"""Checks of the finalizers of objects and namespaces (``ValidateFinalizers``, ``validateFinalizerName``)."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.objects import names
from kemu.emulated.objects.validation.causes import invalid
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

ORPHAN = "orphan"
"""The garbage collector takes the owner references to this object away before it goes."""
FOREGROUND = "foregroundDeletion"
"""The garbage collector deletes the dependents before this object goes."""
KUBERNETES = "kubernetes"
"""Kubernetes of a namespace: the namespace controller empties it first."""
STANDARD = (KUBERNETES, ORPHAN, FOREGROUND)


def check_names(finalizers: Sequence[str], found: list[Cause]) -> None:
    """``ValidateFinalizers``: those in the metadata of an object."""
    path = "metadata.finalizers"
    for name in finalizers:
        found.extend(invalid(path, name, problem) for problem in names.label_key(name))
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        why = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        found.append(invalid(path, list(finalizers), why))


def check_standard(finalizers: Sequence[str], path: str, found: list[Cause]) -> None:
    """Names without a domain are Kubernetes' own."""
    for index, name in enumerate(finalizers):
        _check_standard(name, f"{path}[{index}]", found)


def check_namespace(namespace: core_v1_pb2.Namespace, found: list[Cause], *, indexed: bool) -> None:
    """``spec.finalizers``: ``ValidateNamespace`` gives no index, ``ValidateNamespaceFinalizeUpdate`` does."""
    for index, name in enumerate(namespace.spec.finalizers):
        path = f"spec.finalizers[{index}]" if indexed else "spec.finalizers"
        found.extend(invalid(path, name, problem) for problem in names.label_key(name))
        _check_standard(name, path, found)


def _check_standard(name: str, path: str, found: list[Cause]) -> None:
    if "/" not in name and name not in STANDARD:
        why = "name is neither a standard finalizer name nor is it fully qualified"
        found.append(invalid(path, name, why))
