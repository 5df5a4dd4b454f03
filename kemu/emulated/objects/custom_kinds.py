"""Custom kinds: what a CustomResourceDefinition says of the rows of its versions.

In kemu a custom kind has the name of its definition, ``widgets.example.com``. Each version that is served is a row of
its own; objects are stored in one of them. Who serves custom kinds keeps their rows itself: other clusters in the
process have others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from kemu.emulated.objects import meta
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import apiextensions_v1_pb2
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition, CustomResourceDefinitionVersion

DEFINITIONS = "customresourcedefinitions"
ACCEPTED, ESTABLISHED, TERMINATING = "NamesAccepted", "Established", "Terminating"
NON_STRUCTURAL, APPROVED = "NonStructuralSchema", "KubernetesAPIApprovalPolicyConformant"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer of a definition: its objects go first."""
NAMESPACED = "Namespaced"


@dataclass(frozen=True)
class CustomResource(Resource):
    """One version of a custom kind."""

    definition: CustomResourceDefinition = field(default_factory=CustomResourceDefinition, compare=False, repr=False)
    """Not to be changed."""
    version: CustomResourceDefinitionVersion = field(
        default_factory=CustomResourceDefinitionVersion, compare=False, repr=False
    )
    """The part of it that is about this version."""

    @property
    def collection(self) -> str:
        return self.plural.partition(".")[0]

    @property
    def qualified(self) -> str:
        return self.plural

    @property
    def list_kind(self) -> str:
        """The kind of its lists."""
        return self.definition.status.acceptedNames.listKind or f"{self.kind}List"

    @property
    def has_scale(self) -> bool:
        return self.version.subresources.HasField("scale")


def is_custom(plural: str) -> bool:
    """Whether a name of requests is that of a custom kind."""
    return "." in plural


def is_true(definition: CustomResourceDefinition, condition: str) -> bool:
    return meta.has_condition(definition.status.conditions, condition)


def is_ending(definition: CustomResourceDefinition) -> bool:
    """Whether it is being deleted, and waits for its objects to go."""
    metadata = definition.metadata
    return metadata.HasField("deletionTimestamp") and CLEANUP in metadata.finalizers


def storage_version(definition: CustomResourceDefinition) -> CustomResourceDefinitionVersion | None:
    for version in definition.spec.versions:
        if version.storage:
            return version
    return None


def row(definition: CustomResourceDefinition, version: CustomResourceDefinitionVersion) -> CustomResource:
    spec, names = definition.spec, definition.status.acceptedNames
    return CustomResource(
        definition.metadata.name,
        names.kind or spec.names.kind,
        f"{spec.group}/{version.name}",
        apiextensions_v1_pb2.CustomObject,
        spec.scope == NAMESPACED,
        tuple(names.shortNames),
        version.subresources.HasField("status"),
        definition,
        version,
    )


def rows(definition: CustomResourceDefinition) -> dict[str, CustomResource]:
    """Those of the versions that are served, by version. A definition that is not established serves none."""
    if not is_true(definition, ESTABLISHED):
        return {}
    return {one.name: row(definition, one) for one in definition.spec.versions if one.served}


def placeholder(plural: str, namespaced: bool) -> Resource:
    """Where only the name of the kind is known."""
    group = plural.partition(".")[2]
    return CustomResource(plural, "", f"{group}/", apiextensions_v1_pb2.CustomObject, namespaced)


# Versions -------------------------------------------------------------------------------------------------------------

_KUBE_VERSION = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?", re.ASCII)
_STABILITY = {"alpha": 0, "beta": 1, None: 2}


@lru_cache(1024)
def _rank(version: str) -> tuple[int, int, int] | None:
    """None: it has no form that tells its age."""
    match = _KUBE_VERSION.fullmatch(version)
    if match is None:
        return None
    major, stability, minor = match.groups()
    return _STABILITY[stability], int(major), int(minor or 0)


def by_priority(versions: Sequence[str]) -> list[str]:
    """The preferred one first: ``v10, v2, v1, v3beta1, v12alpha1, v11alpha2, foo1, foo10``
    (``CompareKubeAwareVersionStrings``)."""
    known = [one for one in versions if _rank(one) is not None]
    others = sorted(one for one in versions if _rank(one) is None)
    return [*sorted(known, key=lambda one: _rank(one) or (), reverse=True), *others]
