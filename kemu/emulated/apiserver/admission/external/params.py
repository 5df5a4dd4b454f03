"""The parameters of policies: which objects a binding evaluates its policy with (``CollectParams``)."""

from __future__ import annotations

from typing import Any

from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources, selectors
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.resources import Resource
from kemu.errors import KemuError
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1
from kemu.messages.k8s.objects import KubernetesObject


class BadParams(KemuError):
    """They cannot be had; the text says why."""


class Params:
    def __init__(self, cache: WatchCache) -> None:
        self._cache = cache

    def row(self, kind: v1.ParamKind) -> Resource | None:
        """The row of the kind; None: there is none."""
        for collection in self._cache.collections.values():
            row = collection.resource
            if (row.api_version, row.kind) == (kind.apiVersion, kind.kind):
                return row
        return None

    def collect(
        self,
        kind: v1.ParamKind | None,
        ref: v1.ParamRef | None,
        namespace: str,
    ) -> list[dict[str, Any] | None]:
        """Objects as JSON; [None]: the policy is evaluated without; []: not at all. ``namespace``: of the request.
        Raises BadParams."""
        if kind is None or ref is None:
            return [None]
        row = self.row(kind)
        if row is None:
            raise BadParams(f"paramKind kind `&ParamKind{{APIVersion:{kind.apiVersion},Kind:{kind.kind},}}` not known")
        where = ""
        if row.namespaced:
            where = ref.namespace or namespace
            if not where:
                raise BadParams(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                )
        elif ref.namespace:
            raise BadParams("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        found = [convert.to_manifest(one) for one in self._select(row, ref, where)]
        if not found and ref.parameterNotFoundAction == "Deny":
            raise BadParams("no params found for policy binding with `Deny` parameterNotFoundAction")
        return list(found)

    def _select(self, row: Resource, ref: v1.ParamRef, namespace: str) -> list[KubernetesObject]:
        entries = self._cache.collections[row.plural].entries
        if ref.name:
            entry = entries.get(resources.key(row, namespace, ref.name))
            return [] if entry is None else [row.message.FromString(entry.wire)]
        selector = selectors.compile_labels(ref.selector)
        beginning = resources.prefix(row, namespace)
        objects = [row.message.FromString(entries[key].wire) for key in sorted(entries) if key.startswith(beginning)]
        return [one for one in objects if selector.matches(one.metadata.labels)]
