"""Bugs of Kubernetes, by issue. What v1.36.3 no longer does, a scenario switches on: ``bugs: [k8s-102339]``. What it
still does, a scenario switches off: ``fixes: [k8s-141694]``.

The museum (docs/museum) shows them. An actor reads its switches once, when it is made: they cost nothing when unused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

APISERVER, SCHEDULER, KUBELET, CONTROLLER = "apiserver", "scheduler", "kubelet", "controller"
CLIENTS = "clients"
"""All that have informers."""
CANDIDATES = "candidates"
"""All that take part in a leader election."""


@dataclass(frozen=True, slots=True)
class Bug:
    """One of them, named after its issue in kubernetes/kubernetes."""

    id: str
    actors: str
    """Which actors have it: the first part of their names, or ``CLIENTS``."""
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
    Bug(
        "k8s-59848",
        CLIENTS,
        "The first list of an informer may come from a cache that is behind, and show what is long gone.",
        "#59848 is open; the feature gate WatchListClient, on by default since v1.35",
        is_fixed=False,
    ),
    Bug(
        "k8s-65240",
        CONTROLLER,
        "A DaemonSet replaces a failed pod at once, however often it fails.",
        "#65309, v1.12",
    ),
    Bug(
        "k8s-71486",
        SCHEDULER,
        "The queue tries the pod that failed last first, without a backoff, and heartbeats of nodes requeue all.",
        "#71488, v1.14 (v1.12 and v1.13 by cherry-pick)",
    ),
    Bug(
        "k8s-82149",
        CONTROLLER,
        "The disruption controller writes a status that met a conflict again, over what an eviction has just counted.",
        "#82152, v1.17",
    ),
    Bug(
        "k8s-95822",
        KUBELET,
        "A kubelet that starts admits its pods by the Node that it would register, which lacks later labels.",
        "#94087, v1.21 (v1.18 to v1.20 by cherry-pick)",
    ),
    Bug(
        "k8s-106884",
        KUBELET,
        "A pod is reported as finished a second before the kubelet stops counting it.",
        "#108366, v1.24",
    ),
    Bug(
        "k8s-125491",
        SCHEDULER,
        "A pod that waits in Permit or PreBind is not nominated, so that nobody else knows which node it will use.",
        "KEP-5278, v1.35",
    ),
    Bug(
        "k8s-120413",
        SCHEDULER,
        "A pod misses the events of its attempt, if the event before the attempt is forgotten meanwhile.",
        "#120413, v1.29",
    ),
    Bug(
        "k8s-131867",
        CANDIDATES,
        "A leader that ends releases the lease that it saw last: in vain, if a renewal has come through unnoticed.",
        "#132849, v1.35",
    ),
)

BUGS: dict[str, Bug] = {bug.id: bug for bug in _BUGS}
FIXED = tuple(bug.id for bug in _BUGS if bug.is_fixed)
"""For ``bugs``."""
OPEN = tuple(bug.id for bug in _BUGS if not bug.is_fixed)
"""For ``fixes``."""


def of(actors: str, switched: Iterable[str]) -> list[str]:
    """Those that concern these actors."""
    concerned = [actors]
    if actors != APISERVER:
        concerned.append(CLIENTS)
    if actors in (SCHEDULER, CONTROLLER):
        concerned.append(CANDIDATES)
    return [bug for bug in switched if BUGS[bug].actors in concerned]
