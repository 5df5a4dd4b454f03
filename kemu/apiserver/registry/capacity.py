"""``bind_check: capacity``: an experiment in which binding refuses what the node has no room for.

Kubernetes' API server does not look: schedulers that race can overcommit a node, and the kubelet rejects the surplus.
The check here is safe against other API servers, too: whoever binds to a node also writes the node's guard key, and
only if nobody else has written it since the sum was computed.
"""

from __future__ import annotations

from typing import Any

from kemu.apiserver import errors
from kemu.apiserver.selections import indexed_fields
from kemu.apiserver.storage import Storage
from kemu.apiserver.watch.cache import WatchCache
from kemu.apiserver.watch.feed import Feed
from kemu.objects import pod_phases, resources
from kemu.objects.amounts import requests

GUARDS = b"/kemu/bind-guards/"
"""Prefix of the guard keys, by node. They are not objects."""

PODS = resources.BY_PLURAL["pods"]
NODES = resources.BY_PLURAL["nodes"]
BY_NODE = indexed_fields(PODS).index("spec.nodeName")


class CapacityCheck:
    def __init__(self, storage: Storage, cache: WatchCache, feed: Feed) -> None:
        self._storage = storage
        self._cache = cache
        self._feed = feed

    async def guard(self, pod: Any, node: str) -> tuple[bytes, int]:
        """The guard of ``node`` and the revision that it must still have when ``pod`` is bound.

        Raises :class:`kemu.errors.Conflict` when the pod does not fit.
        """
        key = GUARDS + node.encode()
        response = await self._storage.range(key)
        await self._feed.until(response.header.revision)
        problem = self._problem(pod, node)
        if problem:
            raise errors.conflict(PODS, pod.metadata.name, problem, "binding")
        return key, response.kvs[0].mod_revision if response.kvs else 0

    def _problem(self, pod: Any, node: str) -> str:
        """Why the pod does not fit, or nothing."""
        found = self._cache.collections["nodes"].entries.get(resources.key(NODES, "", node))
        if found is None:
            return f'node "{node}" not found'
        free = requests.resource_list(NODES.message.FromString(found.wire).status.allocatable)  # type: ignore[attr-defined]
        for entry in self._cache.collections["pods"].in_index(BY_NODE, node):
            other: Any = PODS.message.FromString(entry.wire)
            if not pod_phases.is_terminal(other):
                for name, amount in requests.pod_requests_on_node(other).items():
                    free[name] = free.get(name, 0) - amount
                free["pods"] = free.get("pods", 0) - 1
        wanted = {**requests.pod_requests(pod), "pods": 1}
        short = [name for name, amount in wanted.items() if amount and amount > free.get(name, 0)]
        return f'node "{node}" has insufficient {", ".join(short)}' if short else ""
