"""The parameters of policies: which objects a binding evaluates its policy with (``CollectParams``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kemu.emulated.apiserver.custom.served import Served
from kemu.emulated.apiserver.storage import Entry
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import resources, selectors
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.resources import Resource
from kemu.errors import KemuError
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1
from kemu.messages.k8s.objects import KubernetesObject


class BadParams(KemuError):
    """They cannot be had; the text says why."""


Custom = Callable[[str, str], Served | None]
"""The row of a custom kind by API version and kind; None: there is none."""


class Params:
    def __init__(self, cache: WatchCache, custom: Custom) -> None:
        self._cache = cache
        self._custom = custom

    def row(self, kind: v1.ParamKind) -> Resource | None:
        """The row of the kind; None: there is none."""
        row = resources.BY_KIND.get(kind.kind)
        if row is not None and row.api_version == kind.apiVersion:
            return row
        return self._custom(kind.apiVersion, kind.kind)

    async def collect(
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
        found = [convert.to_manifest(one) for one in await self._select(row, ref, where)]
        if not found and ref.parameterNotFoundAction == "Deny":
            raise BadParams("no params found for policy binding with `Deny` parameterNotFoundAction")
        return list(found)

    async def _select(self, row: Resource, ref: v1.ParamRef, namespace: str) -> list[KubernetesObject]:
        collection = self._cache.collections.get(row.plural)
        entries = collection.entries if collection is not None else {}
        if ref.name:
            entry = entries.get(resources.key(row, namespace, ref.name))
            return [] if entry is None else [await _shown(row, entry)]
        selector = selectors.compile_labels(ref.selector)
        beginning = resources.prefix(row, namespace)
        objects = [await _shown(row, entries[key]) for key in sorted(entries) if key.startswith(beginning)]
        return [one for one in objects if selector.matches(one.metadata.labels)]


async def _shown(row: Resource, entry: Entry) -> KubernetesObject:
    """Of a custom kind, in the version of the row. Raises :class:`kemu.errors.ApiError`."""
    return row.message.FromString((await row.converted_entry(entry)).wire if isinstance(row, Served) else entry.wire)
