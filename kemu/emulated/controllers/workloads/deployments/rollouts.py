"""How many replicas the ReplicaSets of a Deployment may have (``deployment/util``, ``rolling.go``, ``sync.go``).

Functions of objects; nothing is changed here. A ReplicaSet that does not exist is None, and counts as empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kemu.emulated.controllers.workloads import scaling
from kemu.emulated.controllers.workloads.deployments import revisions
from kemu.messages.k8s import apps_v1_pb2

ROLLING, RECREATE = "RollingUpdate", "Recreate"


def fenceposts(deployment: apps_v1_pb2.Deployment) -> tuple[int, int]:
    """How many more and how many fewer pods than wanted a rolling update may have (``ResolveFenceposts``)."""
    rolling, wanted = deployment.spec.strategy.rollingUpdate, deployment.spec.replicas
    surge = scaling.scaled(rolling.maxSurge, wanted, up=True)
    unavailable = scaling.scaled(rolling.maxUnavailable, wanted, up=False)
    # Percentages may both round to none; then one pod at a time goes.
    return (surge, unavailable) if surge or unavailable else (0, 1)


def max_surge(deployment: apps_v1_pb2.Deployment) -> int:
    return fenceposts(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: apps_v1_pb2.Deployment) -> int:
    wanted: int = deployment.spec.replicas
    if not is_rolling(deployment) or wanted == 0:
        return 0
    return min(fenceposts(deployment)[1], wanted)


def is_rolling(deployment: apps_v1_pb2.Deployment) -> bool:
    return str(deployment.spec.strategy.type) == ROLLING


def replicas(sets: Iterable[Any | None]) -> int:
    """That the ReplicaSets are to have (``GetReplicaCountForReplicaSets``)."""
    return sum(one.spec.replicas for one in sets if one is not None)


def available(sets: Iterable[Any | None]) -> int:
    return sum(one.status.availableReplicas for one in sets if one is not None)


def active(sets: Iterable[Any | None]) -> list[apps_v1_pb2.ReplicaSet]:
    """Those that are to have replicas (``FilterActiveReplicaSets``)."""
    return [one for one in sets if one is not None and one.spec.replicas > 0]


def new_size(deployment: apps_v1_pb2.Deployment, sets: Iterable[Any | None], new_replicas: int) -> int:
    """Replicas that the newest ReplicaSet may have, which has ``new_replicas`` (``NewRSNewReplicas``)."""
    wanted: int = deployment.spec.replicas
    if not is_rolling(deployment):
        return wanted
    # The real function takes the surge without its fencepost.
    surge = scaling.scaled(deployment.spec.strategy.rollingUpdate.maxSurge, wanted, up=True)
    room = wanted + surge - replicas(sets)
    return new_replicas if room <= 0 else new_replicas + min(room, wanted - new_replicas)


def removable(deployment: apps_v1_pb2.Deployment, sets: Iterable[Any | None], new: apps_v1_pb2.ReplicaSet) -> int:
    """Replicas of old ReplicaSets that may go, the healthy ones only as far as others are available
    (``reconcileOldReplicaSets``)."""
    least = deployment.spec.replicas - max_unavailable(deployment)
    unavailable_new = new.spec.replicas - new.status.availableReplicas
    return int(replicas(sets) - least - unavailable_new)


def is_saturated(deployment: apps_v1_pb2.Deployment, new: apps_v1_pb2.ReplicaSet | None) -> bool:
    """Whether the newest ReplicaSet has all replicas, available, and was sized for as many (``IsSaturated``)."""
    if new is None:
        return False
    wanted = deployment.spec.replicas
    desired = revisions.integer(new.metadata.annotations.get(revisions.DESIRED, ""))
    return bool(desired == wanted == new.spec.replicas == new.status.availableReplicas)


def only_active_or_latest(
    new: apps_v1_pb2.ReplicaSet | None, old: list[apps_v1_pb2.ReplicaSet]
) -> apps_v1_pb2.ReplicaSet | None:
    """The ReplicaSet that gets all replicas when a Deployment is scaled, None where several share them
    (``FindActiveOrLatest``). Sorts ``old``, the youngest first."""
    if new is None and not old:
        return None
    old.sort(key=revisions.age, reverse=True)
    running = active([*old, new])
    if len(running) > 1:
        return None
    if running:
        return running[0]
    return new if new is not None else old[0]


def proportional_sizes(deployment: apps_v1_pb2.Deployment, sets: Sequence[Any | None]) -> list[tuple[Any, int]]:
    """The ReplicaSets with replicas, and how many each of them gets when a Deployment is scaled in the middle of a
    rollout: in proportion to what it has (``scale``)."""
    sharing = active(sets)
    wanted: int = deployment.spec.replicas
    allowed = wanted + max_surge(deployment) if wanted > 0 else 0
    to_add = allowed - replicas(sharing)
    if to_add > 0:
        # Of equal size the youngest first.
        sharing.sort(key=revisions.age, reverse=True)
    elif to_add < 0:
        sharing.sort(key=revisions.age)
    if to_add:
        sharing.sort(key=lambda one: -one.spec.replicas)
    added = 0
    sizes = []
    for one in sharing:
        share = _proportion(one, deployment, to_add, added) if to_add else 0
        added += share
        sizes.append(one.spec.replicas + share)
    if to_add and sizes:
        sizes[0] = max(0, sizes[0] + to_add - added)
    return list(zip(sharing, sizes, strict=True))


def _proportion(one: apps_v1_pb2.ReplicaSet, deployment: apps_v1_pb2.Deployment, to_add: int, added: int) -> int:
    """``GetReplicaSetProportion``."""
    if to_add == added:
        return 0
    fraction, rest = _fraction(one, deployment), to_add - added
    return min(fraction, rest) if to_add > 0 else max(fraction, rest)


def _fraction(one: apps_v1_pb2.ReplicaSet, deployment: apps_v1_pb2.Deployment) -> int:
    """``getReplicaSetFraction``."""
    size: int = one.spec.replicas
    if deployment.spec.replicas == 0:
        return -size
    before = revisions.replicas_annotation(one, revisions.MAX) or deployment.status.replicas
    if before == 0:
        return 0
    grown = size * (deployment.spec.replicas + max_surge(deployment)) / before
    return int(grown + 0.5) - size
