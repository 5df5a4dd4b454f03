"""The claims that the claim controller has created, until its informer shows them.

Mirrors ``MutationCache`` of client-go as the controller uses it. An entry is dropped when a look-up finds the object in
the informer; a claim that is deleted before any look-up stays, and is found, for an hour.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from kemu.emulated.objects import meta
from kemu.emulated.objects.devices import claims
from kemu.messages.k8s.resource_v1_pb2 import ResourceClaim
from kemu.runtime.env import SECOND_NS, Clock

LIFE_NS = 3600 * SECOND_NS
MOST = 100


class CreatedClaims:
    """By key, ``namespace/name``, on top of the claims in ``store``."""

    def __init__(self, clock: Clock, store: Mapping[str, ResourceClaim]) -> None:
        self._clock = clock
        self._store = store
        self._claims: OrderedDict[str, tuple[ResourceClaim, int]] = OrderedDict()
        """With the time at which they are forgotten."""

    def add(self, claim: ResourceClaim) -> None:
        key = meta.namespaced_name(claim)
        self._claims[key] = claim, self._clock.now_ns() + LIFE_NS
        self._claims.move_to_end(key)
        if len(self._claims) > MOST:
            self._claims.popitem(last=False)

    def of_owner(self, uid: str, known: Iterable[str]) -> list[ResourceClaim]:
        """The claims that a pod or a PodGroup owns. ``known``: keys of those of them that the informer shows."""
        found = []
        shown: dict[str, None] = {}
        for key in known:
            claim = self._store.get(key)
            if claim is not None:
                shown[key] = None
                found.append(self._newest(key, claim))
        now_ns = self._clock.now_ns()
        for key, (claim, until_ns) in list(self._claims.items()):
            if until_ns <= now_ns:
                del self._claims[key]
            elif key not in shown and claims.owner_uid(claim) == uid:
                found.append(claim)
        return found

    def _newest(self, key: str, claim: ResourceClaim) -> ResourceClaim:
        created = self._claims.get(key)
        if created is None:
            return claim
        if int(claim.metadata.resourceVersion) >= int(created[0].metadata.resourceVersion):
            del self._claims[key]
            return claim
        return created[0]
