"""Admission hooks of one's own: what a team wants of its pods, and what the platform adds to them.

Each function is called with a review: ``operation``, ``object`` and ``old_object`` as JSON, ``user``, ``namespace``, …
It refuses by ``review.deny(…)``; one whose hook has ``mutates: true`` may change ``review.object``.
"""

from __future__ import annotations

from typing import Any


def requests_needed(review: Any) -> None:
    """Refuses pods with containers that do not say how much CPU they need."""
    for container in review.object["spec"]["containers"]:
        if "cpu" not in container.get("resources", {}).get("requests", {}):
            review.deny(f"container {container['name']} requests no cpu", code=422, reason="Invalid")


def spread_by_app(review: Any) -> None:
    """Lets the pods of an app prefer nodes on which there is none of it yet."""
    app = review.object["metadata"].get("labels", {}).get("app")
    if app is None:
        review.warn("pods without the label app are not spread")
        return
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    preference = {"weight": 100, "podAffinityTerm": term}
    affinity = review.object["spec"].setdefault("affinity", {}).setdefault("podAntiAffinity", {})
    affinity.setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).append(preference)
