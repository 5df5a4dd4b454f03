"""Pods that owners have lost and not yet replaced, so that the run log can say which pod replaces which.

What was lost while the controller did not run is unknown.
"""

from __future__ import annotations


class Losses:
    """By UID of the owner, in the order of the losses. A *place* is what a pod has in common with its replacement."""

    def __init__(self) -> None:
        self._lost: dict[str, dict[str, tuple[str, str]]] = {}
        """By UID of the pod: its name and place."""

    def __len__(self) -> int:
        return len(self._lost)

    def note(self, owner: str, pod: str, name: str, place: str) -> None:
        self._lost.setdefault(owner, {})[pod] = name, place

    def take(self, owner: str, place: str) -> tuple[str, str]:
        """UID and name of the first pod that was lost from a place, which is replaced now; empty: there is none."""
        lost = self._lost.get(owner, {})
        for uid, (name, left) in lost.items():
            if left == place:
                self.forget_pod(owner, uid)
                return uid, name
        return "", ""

    def forget_pod(self, owner: str, pod: str) -> None:
        lost = self._lost.get(owner)
        if lost is not None and lost.pop(pod, None) is not None and not lost:
            del self._lost[owner]

    def forget_place(self, owner: str, place: str) -> None:
        """Nothing will be replaced there."""
        for uid in [uid for uid, (_, left) in self._lost.get(owner, {}).items() if left == place]:
            self.forget_pod(owner, uid)

    def forget(self, owner: str) -> None:
        """Nothing is missing, or the owner is gone."""
        self._lost.pop(owner, None)
