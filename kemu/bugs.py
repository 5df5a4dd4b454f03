"""Bugs of Kubernetes, by issue. What v1.36.3 no longer does, a scenario switches on: ``bugs: [k8s-102339]``. What it
still does, a scenario switches off: ``fixes: [k8s-141694]``.

The museum (docs/museum) shows them. An actor reads its switches once, when it is made: they cost nothing when unused.
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
    fix: str
    """The pull request with the fix, and the first minor release that has it."""
    is_fixed: bool = True
    """In v1.36.3."""


_BUGS = (
    Bug(
        "k8s-102339",
        SCHEDULER,
        "A pod that was deleted during its attempt keeps its nomination, and with it the room on the node.",
        "#102498, v1.22",
    ),
    Bug(
        "k8s-72124",
        SCHEDULER,
        "A nomination counts only when the watch shows it, so that a pod tried meanwhile takes the room.",
        "#72259, v1.14",
    ),
    Bug(
        "k8s-106361",
        SCHEDULER,
        "A pod that was bound 30 s ago takes no room until the watch shows its binding.",
        "#106412, v1.23",
    ),
    Bug(
        "k8s-106780",
        SCHEDULER,
        "A failed attempt never clears the nomination of its pod, which keeps room that it cannot use.",
        "#106816, v1.24",
    ),
    Bug(
        "k8s-109236",
        SCHEDULER,
        "A pod that was bound during its attempt is nominated, and takes room on two nodes.",
        "#109245, v1.24",
    ),
    Bug(
        "k8s-126700",
        SCHEDULER,
        "The end of a nomination requeues nobody, so that pods that fit now wait for another event.",
        "#129058, v1.33",
    ),
    Bug(
        "k8s-134249",
        SCHEDULER,
        "A preemptor whose last victim is not deleted yet may be tried again, and preempts the victim again.",
        "#134730, v1.35",
    ),
    Bug(
        "k8s-141694",
        SCHEDULER,
        "A preemption that finds its victims gone does not requeue the preemptor, whom no event will wake.",
        "#142294, open",
        is_fixed=False,
    ),
)

BUGS: dict[str, Bug] = {bug.id: bug for bug in _BUGS}
FIXED = tuple(bug.id for bug in _BUGS if bug.is_fixed)
"""For ``bugs``."""
OPEN = tuple(bug.id for bug in _BUGS if not bug.is_fixed)
"""For ``fixes``."""


def of(actors: str, switched: Iterable[str]) -> list[str]:
    """Those that concern these actors."""
    return [bug for bug in switched if BUGS[bug].actors == actors]
