"""Bugs that Kubernetes had and has fixed since, which a scenario can switch on: ``bugs: [k8s-102339]``.

The museum (docs/museum) shows them. An actor reads its bugs once, when it is made, so they cost nothing when unused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

APISERVER, SCHEDULER, KUBELET, CONTROLLER = "apiserver", "scheduler", "kubelet", "controller"


@dataclass(frozen=True, slots=True)
class Bug:
    """One of them, named after its issue in kubernetes/kubernetes."""

    id: str
    actors: str
    """Which actors have it: the first part of their names."""
    doc: str
    """What they do wrong, in one sentence."""
    fixed: str
    """The pull request that fixed it, and the first minor release with the fix."""


_BUGS = (
    Bug(
        "k8s-102339",
        SCHEDULER,
        "A pod that was deleted during its attempt keeps its nomination, and with it the room on the node.",
        "#102498, v1.22",
    ),
)

BUGS: dict[str, Bug] = {bug.id: bug for bug in _BUGS}


def of(actors: str, bugs: Iterable[str]) -> list[str]:
    """Those of ``bugs`` that these actors have."""
    return [bug for bug in bugs if BUGS[bug].actors == actors]
