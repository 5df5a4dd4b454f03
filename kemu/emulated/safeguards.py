"""The safeguards that an ablation can take away, one at a time.

A scenario with ``ablate: [bind-once]`` runs with actors that lack that one safeguard and are otherwise unchanged. A run
that then breaks a check shows that the check can see what the safeguard prevents (docs/ablations.md).

This is the one table of names: the scenario format takes its words from here, the documents their rows, and each actor
looks into its own config (``ablate``) when it is made and composes itself accordingly. Nothing is decided later, and
without ablations every actor is made of the same classes as ever.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

CONFIG_KEY = "ablate"
"""In the config of an actor: a list of names."""


@dataclass(frozen=True, slots=True)
class Safeguard:
    """Something in Kubernetes that prevents one kind of failure."""

    name: str
    part: str
    """The component that lacks it when it is ablated."""
    does: str
    """What it does, as a sentence."""
    source: str
    """The package and function of Kubernetes, or etcd, that has it."""


_ALL = (
    Safeguard(
        "resource-version-precondition",
        "API server",
        "An update or a deletion that states a resource version is refused if the object has changed since.",
        "`apiserver/pkg/registry/generic/registry`: `Store.Update`; `apiserver/pkg/storage`: `Preconditions.Check`",
    ),
    Safeguard(
        "uid-precondition",
        "API server",
        "A request that states a UID is refused if another object has the name by now.",
        "`apiserver/pkg/storage`: `Preconditions.Check`; `pkg/registry/core/pod/storage`: `BindingREST`",
    ),
    Safeguard(
        "compare-and-swap",
        "API server",
        "A change is written only if the store still has the version from which it was computed.",
        "`apiserver/pkg/storage/etcd3`: `store.GuaranteedUpdate`",
    ),
    Safeguard(
        "bind-once",
        "API server",
        "A pod that has a node is not bound again.",
        "`pkg/registry/core/pod/storage`: `setPodNodeAndMetadata`",
    ),
    Safeguard(
        "graceful-termination",
        "API server",
        "A deleted pod keeps its object, with a deletion timestamp, until its kubelet has seen its containers end.",
        "`apiserver/pkg/registry/rest`: `BeforeDelete`; `pkg/registry/core/pod`: `CheckGracefulDelete`",
    ),
    Safeguard(
        "budget-accounting",
        "API server",
        "An eviction takes a disruption from its budget, which counts until the disruption controller has seen it.",
        "`pkg/registry/core/pod/storage`: `EvictionREST.checkAndDecrement`",
    ),
    Safeguard(
        "watch-resume",
        "clients and API servers",
        "A watch whose connection broke goes on after the last revision that it has seen.",
        "`client-go/tools/cache`: `Reflector.watch` (`lastSyncResourceVersion`)",
    ),
    Safeguard(
        "relist-on-gap",
        "clients and API servers",
        "When the revision at which a watch stood is compacted, its client lists everything again.",
        "`client-go/tools/cache`: `Reflector.ListAndWatch` (`isExpiredError`)",
    ),
    Safeguard(
        "journal-before-acknowledgement",
        "store",
        "A transaction is answered only when it is in the journal.",
        "etcd `server/etcdserver`: `EtcdServer.processInternalRaftRequestOnce`",
    ),
    Safeguard(
        "fsync-before-acknowledgement",
        "store",
        "What is in the journal is made durable before clients and watchers are told of it.",
        "etcd `server/storage/wal`: `WAL.Save`",
    ),
    Safeguard(
        "assume-cache",
        "scheduler",
        "A pod counts on its node from the decision on, not only when a watch shows it there.",
        "`pkg/scheduler/backend/cache`: `AssumePod`",
    ),
    Safeguard(
        "nomination",
        "scheduler",
        "The room that preemption makes is kept for the preemptor: its pod is nominated to the node.",
        "`pkg/scheduler/framework/plugins/defaultpreemption`: `PostFilter`; `pkg/scheduler/backend/queue`: `nominator`",
    ),
    Safeguard(
        "two-pass-filtering",
        "scheduler",
        "A node must also pass the filters with the pods that are nominated to it, not only as it is.",
        "`pkg/scheduler/framework/runtime`: `RunFilterPluginsWithNominatedPods`",
    ),
    Safeguard(
        "second-filtering-pass",
        "scheduler",
        "A node that passes the filters with its nominated pods must pass without them, too: they do not run yet.",
        "`pkg/scheduler/framework/runtime`: `RunFilterPluginsWithNominatedPods`",
    ),
    Safeguard(
        "clear-lower-nominations",
        "scheduler",
        "A preemptor takes the nominations of lower pods to its node away, so that they look elsewhere.",
        "`pkg/scheduler/framework/preemption`: `prepareCandidate` (`ClearNominatedNodeName`)",
    ),
    Safeguard(
        "requeue-on-events",
        "scheduler",
        "An event that may help an unschedulable pod requeues it at once.",
        "`pkg/scheduler/backend/queue`: `MoveAllToActiveOrBackoffQueue`",
    ),
    Safeguard(
        "in-flight-events",
        "scheduler",
        "Events during an attempt are remembered, and requeue the pod if the attempt fails.",
        "`pkg/scheduler/backend/queue`: `activeQueue` (`inFlightEvents`)",
    ),
    Safeguard(
        "kubelet-admission",
        "kubelet",
        "A kubelet checks that an arriving pod fits, and fails it if it does not.",
        "`pkg/kubelet`: `canAdmitPod`; `pkg/kubelet/lifecycle`: `predicateAdmitHandler.Admit`",
    ),
    Safeguard(
        "containers-end-before-deletion",
        "kubelet",
        "A kubelet removes the object of a deleted pod only when its containers have ended.",
        "`pkg/kubelet/status`: `manager.canBeDeleted`",
    ),
    Safeguard(
        "controller-expectations",
        "controllers",
        "A ReplicaSet controller does not act again before its watch has shown what it did last.",
        "`pkg/controller`: `ControllerExpectations.SatisfiedExpectations`",
    ),
    Safeguard(
        "node-eviction-rate",
        "controllers",
        "Lost nodes are tainted no faster than a rate that depends on how many of their zone are lost.",
        "`pkg/controller/nodelifecycle/scheduler`: `RateLimitedTimedQueue.Try`",
    ),
)

SAFEGUARDS: Mapping[str, Safeguard] = MappingProxyType({one.name: one for one in _ALL})
"""By name."""

OF_THE_STORE = tuple(one.name for one in _ALL if one.part == "store")
"""Those that only kemu's own store can lack."""

T = TypeVar("T")


def ablated(config: Mapping[str, Any]) -> frozenset[str]:
    """The safeguards that an actor lacks, by its config. Raises ValueError for a name that does not exist."""
    names = config.get(CONFIG_KEY, ())
    for name in names:
        if name not in SAFEGUARDS:
            raise ValueError(f"unknown safeguard {name!r}; there are {', '.join(SAFEGUARDS)}")
    return frozenset(names)


def without(kind: type[T], lacking: Mapping[str, type[T]], names: Collection[str]) -> type[T]:
    """The class, or one of it that lacks the safeguards in ``names``.

    ``lacking``: subclasses by the safeguard that each takes away. Several of them combine.
    """
    bases = tuple(subclass for name, subclass in lacking.items() if name in names)
    return type(kind.__name__, bases, {"__slots__": ()}) if bases else kind
