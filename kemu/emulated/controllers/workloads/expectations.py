"""What a controller has done and not yet seen in its watch (``ControllerExpectations`` in ``pkg/controller``).

An owner whose expectations are not met is not managed: with an old view its controller would create too many pods.
Created pods are tracked by UID, too; Kubernetes counts them, as it does not know the UIDs beforehand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu import errors
from kemu.emulated.client import informers
from kemu.messages.k8s.objects import KubernetesObject
from kemu.runtime.env import SECOND_NS, Clock

TIMEOUT_S = 5 * 60
"""After that the news is taken for lost (``ExpectationsTimeout``)."""

CREATED, DELETED = "created", "deleted"


class Expectations:
    """By UID of the owner."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, dict[str, str]] = {}
        """By UID of the pod: CREATED or DELETED."""
        self._since_ns: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def expect(self, owner: str, pod: str, what: str) -> None:
        self._pods.setdefault(owner, {})[pod] = what
        self._since_ns[owner] = self._clock.now_ns()

    def observe(self, owner: str, pod: str, what: str) -> None:
        pods = self._pods.get(owner)
        if pods is not None and pods.get(pod) == what:
            del pods[pod]
            if not pods:
                self.forget(owner)

    def expects_deletion(self, owner: str, pod: str) -> bool:
        return self._pods.get(owner, {}).get(pod) == DELETED

    def waits(self, owner: str) -> bool:
        """Whether anything is expected still."""
        return owner in self._pods

    def are_met(self, owner: str) -> bool:
        """Forgets those that are too old."""
        if owner not in self._pods:
            return True
        if self._clock.now_ns() - self._since_ns[owner] < TIMEOUT_S * SECOND_NS:
            return False
        self.forget(owner)
        return True

    def forget(self, owner: str) -> None:
        self._pods.pop(owner, None)
        self._since_ns.pop(owner, None)


class Writes:
    """The newest resource versions that a controller has written for each owner: what it reads must be as new
    (``ConsistencyStore`` of ``pkg/controller/util/consistency``)."""

    def __init__(self, read: Mapping[str, informers.Informer[Any]]) -> None:
        """``read``: what the controller reads, by resource."""
        self._read = read
        self._versions: dict[str, dict[str, int]] = {}
        """By key of the owner, then by resource."""

    def wrote(self, owner: str, resource: str, obj: KubernetesObject) -> None:
        versions = self._versions.setdefault(owner, {})
        versions[resource] = max(versions.get(resource, 0), int(obj.metadata.resourceVersion or 0))

    def check(self, owner: str) -> None:
        """``EnsureReady``. Raises Conflict: it is too early for a sync."""
        versions = self._versions.get(owner)
        if versions is None:
            return
        for resource, version in versions.items():
            read = self._read[resource].revision
            if version > read:
                raise errors.Conflict(
                    f"read version: {read} is not as new as written version: {version} for group resource {resource}"
                )
        self.forget(owner)

    def forget(self, owner: str) -> None:
        self._versions.pop(owner, None)
