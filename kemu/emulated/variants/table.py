"""All variants: what each is, who proposed or fixed it, and the scenario that shows it."""

from __future__ import annotations

from dataclasses import dataclass

ABLATION, BUG, FIX, EXPERIMENT = "ablate", "bugs", "fixes", "policy"
"""Kinds of variants, by the key in a scenario that switches them on."""

STORE, APISERVER, SCHEDULER, KUBELET, CONTROLLERS = "store", "API server", "scheduler", "kubelet", "controllers"
CLIENTS = "clients"
"""All that have informers."""
CANDIDATES = "candidates"
"""All that take part in a leader election."""
WATCHERS = "clients and API servers"


@dataclass(frozen=True, slots=True)
class Variant:
    """One deviation from today's Kubernetes."""

    name: str
    """As a scenario names it; of an experiment, ``switch: value``, or the switch alone if its value is a number."""
    kind: str
    actors: str
    """The actors that vary."""
    does: str
    """As a sentence. Of an ablation: what the safeguard does that is taken away."""
    source: str
    """Source of an ablation: the package and function of Kubernetes, or etcd, that has the safeguard. Of a bug: the
    pull request with the fix, and the first minor release that has it. Of an experiment: who proposed it."""
    scenario: str
    """A shipped scenario that shows it; "" if there is none."""


def _rows(kind: str, actors: str, *rows: tuple[str, str, str, str]) -> tuple[Variant, ...]:
    """Each row: name, what it does, source, scenario."""
    return tuple(Variant(name, kind, actors, *rest) for name, *rest in rows)


ALL = (
    *_rows(
        ABLATION,
        APISERVER,
        (
            "resource-version-precondition",
            "An update or a deletion that states a resource version is refused if the object has changed since.",
            "`apiserver/pkg/registry/generic/registry`: `Store.Update`; `apiserver/pkg/storage`: `Preconditions.Check`",
            "seeds/taints-and-tolerations",
        ),
        (
            "uid-precondition",
            "A request that states a UID is refused if another object has the name by now.",
            "`apiserver/pkg/storage`: `Preconditions.Check`; `pkg/registry/core/pod/storage`: `BindingREST`",
            "races/recreated-pod",
        ),
        (
            "compare-and-swap",
            "A change is written only if the store still has the version from which it was computed.",
            "`apiserver/pkg/storage/etcd3`: `store.GuaranteedUpdate`",
            "chaos/repeated-requests",
        ),
        (
            "bind-once",
            "A pod that has a node is not bound again.",
            "`pkg/registry/core/pod/storage`: `setPodNodeAndMetadata`",
            "races/two-replicas-same-pods",
        ),
        (
            "graceful-termination",
            "A deleted pod keeps its object, with a deletion timestamp, until its kubelet has seen its containers end.",
            "`apiserver/pkg/registry/rest`: `BeforeDelete`; `pkg/registry/core/pod`: `CheckGracefulDelete`",
            "races/evictions-at-once",
        ),
        (
            "budget-accounting",
            "An eviction takes a disruption from its budget, which counts until the disruption controller has seen it.",
            "`pkg/registry/core/pod/storage`: `EvictionREST.checkAndDecrement`",
            "races/evictions-at-once",
        ),
    ),
    *_rows(
        ABLATION,
        WATCHERS,
        (
            "watch-resume",
            "A watch whose connection broke goes on after the last revision that it has seen.",
            "`client-go/tools/cache`: `Reflector.watch` (`lastSyncResourceVersion`)",
            "chaos/kubelet-partition",
        ),
        (
            "relist-on-gap",
            "When the revision at which a watch stood is compacted, its client lists everything again.",
            "`client-go/tools/cache`: `Reflector.ListAndWatch` (`isExpiredError`)",
            "chaos/cut-watches",
        ),
    ),
    *_rows(
        ABLATION,
        STORE,
        (
            "journal-before-acknowledgement",
            "A transaction is answered only when it is in the journal.",
            "etcd `server/etcdserver`: `EtcdServer.processInternalRaftRequestOnce`",
            "chaos/torn-write",
        ),
        (
            "fsync-before-acknowledgement",
            "What is in the journal is made durable before clients and watchers are told of it.",
            "etcd `server/storage/wal`: `WAL.Save`",
            "chaos/failing-fsync",
        ),
    ),
    *_rows(
        ABLATION,
        SCHEDULER,
        (
            "assume-cache",
            "A pod counts on its node from the decision on, not only when a watch shows it there.",
            "`pkg/scheduler/backend/cache`: `AssumePod`",
            "races/burst-on-full-nodes",
        ),
        (
            "nomination",
            "The room that preemption makes is kept for the preemptor: its pod is nominated to the node.",
            (
                "`pkg/scheduler/framework/plugins/defaultpreemption`: `PostFilter`; "
                "`pkg/scheduler/backend/queue`: `nominator`"
            ),
            "seeds/preemption-example-1",
        ),
        (
            "two-pass-filtering",
            "A node must also pass the filters with the pods that are nominated to it, not only as it is.",
            "`pkg/scheduler/framework/runtime`: `RunFilterPluginsWithNominatedPods`",
            "seeds/preemption-example-1",
        ),
        (
            "second-filtering-pass",
            "A node that passes the filters with its nominated pods must pass without them, too: they do not run yet.",
            "`pkg/scheduler/framework/runtime`: `RunFilterPluginsWithNominatedPods`",
            "seeds/affinity-to-a-nominated-pod",
        ),
        (
            "clear-lower-nominations",
            "A preemptor takes the nominations of lower pods to its node away, so that they look elsewhere.",
            "`pkg/scheduler/framework/preemption`: `prepareCandidate` (`ClearNominatedNodeName`)",
            "races/nominated-node-taken",
        ),
        (
            "requeue-on-events",
            "An event that may help an unschedulable pod requeues it at once.",
            "`pkg/scheduler/backend/queue`: `MoveAllToActiveOrBackoffQueue`",
            "seeds/preemption-example-1",
        ),
        (
            "in-flight-events",
            "Events during an attempt are remembered, and requeue the pod if the attempt fails.",
            "`pkg/scheduler/backend/queue`: `activeQueue` (`inFlightEvents`)",
            "races/event-during-an-attempt",
        ),
    ),
    *_rows(
        ABLATION,
        KUBELET,
        (
            "kubelet-admission",
            "A kubelet checks that an arriving pod fits, and fails it if it does not.",
            "`pkg/kubelet`: `canAdmitPod`; `pkg/kubelet/lifecycle`: `predicateAdmitHandler.Admit`",
            "races/two-schedulers-one-node",
        ),
        (
            "containers-end-before-deletion",
            "A kubelet removes the object of a deleted pod only when its containers have ended.",
            "`pkg/kubelet/status`: `manager.canBeDeleted`",
            "races/evictions-at-once",
        ),
    ),
    *_rows(
        ABLATION,
        CONTROLLERS,
        (
            "controller-expectations",
            "A ReplicaSet controller does not act again before its watch has shown what it did last.",
            (
                "`pkg/controller`: `ControllerExpectations.SatisfiedExpectations`; `pkg/controller/util/consistency`: "
                "`RealConsistencyStore.EnsureReady`"
            ),
            "races/replica-set-expectations",
        ),
        (
            "node-eviction-rate",
            "Lost nodes are tainted no faster than a rate that depends on how many of their zone are lost.",
            "`pkg/controller/nodelifecycle/scheduler`: `RateLimitedTimedQueue.Try`",
            "chaos/zone-outage",
        ),
    ),
    *_rows(
        BUG,
        SCHEDULER,
        (
            "k8s-102339",
            "A pod that was deleted during its attempt keeps its nomination, and with it the room on the node.",
            "#102498, v1.22",
            "museum/102339-deleted-pod-keeps-its-nomination",
        ),
        (
            "k8s-72124",
            "A nomination counts only when the watch shows it, so that a pod tried meanwhile takes the room.",
            "#72259, v1.14",
            "museum/72124-nomination-seen-late",
        ),
        (
            "k8s-106361",
            "A pod that was bound 30 s ago takes no room until the watch shows its binding.",
            "#106412, v1.23",
            "museum/106361-assumed-pod-expires",
        ),
        (
            "k8s-106780",
            "A failed attempt never clears the nomination of its pod, which keeps room that it cannot use.",
            "#106816, v1.24",
            "museum/106780-nomination-without-room",
        ),
        (
            "k8s-109236",
            "A pod that was bound during its attempt is nominated, and takes room on two nodes.",
            "#109245, v1.24",
            "museum/109236-bound-pod-keeps-its-nomination",
        ),
        (
            "k8s-126700",
            "The end of a nomination requeues nobody, so that pods that fit now wait for another event.",
            "#129058, v1.33",
            "museum/126700-end-of-nomination-wakes-nobody",
        ),
        (
            "k8s-133602",
            "A device whose allocation was written a moment ago counts as free, and is given to another claim, too.",
            "#136269, v1.36 (v1.32 to v1.35 by cherry-pick)",
            "museum/133602-one-device-twice",
        ),
        (
            "k8s-134249",
            "A preemptor whose last victim is not deleted yet may be tried again, and preempts the victim again.",
            "#134730, v1.35",
            "museum/134249-victim-preempted-again",
        ),
    ),
    *_rows(
        BUG,
        CLIENTS,
        (
            "k8s-59848",
            "The first list of an informer may come from a cache that is behind, and show what is long gone.",
            "the feature gate WatchListClient, on by default since v1.35",
            "museum/59848-one-name-runs-twice",
        ),
    ),
    *_rows(
        BUG,
        CONTROLLERS,
        (
            "k8s-129795",
            "A sync begins before the watch has shown what the last one wrote, once expectations are met or expired.",
            "#137212, v1.36, the feature gates StaleControllerConsistency…",
            "museum/129795-expectations-expire",
        ),
        (
            "k8s-65240",
            "A DaemonSet replaces a failed pod at once, however often it fails.",
            "#65309, v1.12",
            "museum/65240-daemon-set-hot-loop",
        ),
    ),
    *_rows(
        BUG,
        SCHEDULER,
        (
            "k8s-71486",
            "The queue tries the pod that failed last first, without a backoff, and heartbeats of nodes requeue all.",
            "#71488, v1.14 (v1.12 and v1.13 by cherry-pick)",
            "museum/71486-heartbeats-block-the-queue",
        ),
    ),
    *_rows(
        BUG,
        CONTROLLERS,
        (
            "k8s-82149",
            (
                "The disruption controller writes a status that met a conflict again, over what an eviction has just "
                "counted."
            ),
            "#82152, v1.17",
            "museum/82149-controller-overwrites-an-eviction",
        ),
    ),
    *_rows(
        BUG,
        KUBELET,
        (
            "k8s-95822",
            "A kubelet that starts admits its pods by the Node that it would register, which lacks later labels.",
            "#94087, v1.21 (v1.18 to v1.20 by cherry-pick)",
            "museum/95822-node-not-synced",
        ),
        (
            "k8s-106884",
            "A pod is reported as finished a second before the kubelet stops counting it.",
            "#108366, v1.24",
            "museum/106884-finished-pod-still-counts",
        ),
    ),
    *_rows(
        BUG,
        SCHEDULER,
        (
            "k8s-125491",
            "A pod that waits in Permit or PreBind is not nominated, so that nobody else knows which node it will use.",
            "KEP-5278, v1.35",
            "museum/125491-scale-down-during-a-binding",
        ),
        (
            "k8s-120413",
            "A pod misses the events of its attempt, if the event before the attempt is forgotten meanwhile.",
            "#120413, v1.29",
            "museum/120413-event-list-without-an-anchor",
        ),
    ),
    *_rows(
        BUG,
        CANDIDATES,
        (
            "k8s-131867",
            "A leader that ends releases the lease that it saw last: in vain, if a renewal has come through unnoticed.",
            "#132849, v1.35",
            "museum/131867-release-in-vain",
        ),
    ),
    *_rows(
        FIX,
        SCHEDULER,
        (
            "k8s-141694",
            "A preemption that finds its victims gone does not requeue the preemptor, whom no event will wake.",
            "#142294, open",
            "museum/141694-preemptor-that-nothing-wakes",
        ),
    ),
    *_rows(
        EXPERIMENT,
        SCHEDULER,
        (
            "queue: fifo",
            "Pods are tried in the order of their arrival, the failed ones last.",
            "the first pod preemption design",
            "seeds/starvation",
        ),
        (
            "requeue: all",
            "Any event requeues all unschedulable pods, not only those that it may help.",
            "the pod preemption design",
            "museum/71486-heartbeats-block-the-queue",
        ),
        (
            "nomination: off",
            "The room that preemption makes is not kept for the preemptor.",
            "the first pod preemption design",
            "seeds/starvation",
        ),
        (
            "nominatedNodeFirst: off",
            "A pod is tried on all nodes although its nominated node passes.",
            "the pod preemption design",
            "seeds/nominated-node-first",
        ),
        (
            "cooperate: off",
            "Nominations that other schedulers have made are not honoured.",
            "the pod preemption design",
            "seeds/multi-scheduler-race",
        ),
        (
            "clearLowerNominations: always",
            "A new preemptor clears lower nominations on its node also when all of its victims terminate already.",
            "the pod preemption design",
            "seeds/preemption-example-4",
        ),
        (
            "clearLowerNominations: if-unfit",
            "As always, but only nominations of pods that no longer fit beside the preemptor are cleared.",
            "the pod preemption design",
            "seeds/preemption-example-4",
        ),
        (
            "clearLowerNominations: never",
            "Lower nominations are left alone.",
            "the safeguard clear-lower-nominations",
            "races/nominated-node-taken",
        ),
        ("disablePreemption: on", "No pod preempts.", "none: as a profile without DefaultPreemption", ""),
        (
            "eligibility: alpha",
            "Any terminating pod of lower priority on the nominated node bars another preemption.",
            "the pod preemption design: alpha",
            "seeds/preemption-eligibility",
        ),
        (
            "preemptor: kubelet",
            "The scheduler binds as if pods of lower priority were not there, and the node makes room.",
            "the pod preemption design: rejected",
            "seeds/who-preempts",
        ),
        (
            "preemptor: rescheduler",
            "An actor of its own preempts.",
            "the pod preemption design: rejected",
            "seeds/who-preempts",
        ),
        ("preemptor: none", "No pod preempts, but the node may make room.", "the pod preemption design", ""),
        (
            "pdb: ignore",
            "Victims are chosen regardless of disruption budgets.",
            "the pod preemption design: alpha",
            "seeds/disruption-budgets",
        ),
        (
            "victimOrder: priority-then-qos",
            "Among pods of equal priority the QoS class decides who leaves first.",
            "the pod preemption design: proposed",
            "races/priority-against-qos",
        ),
        (
            "victimOrder: qos",
            "The QoS class ranks victims, and priority breaks ties.",
            "the pod preemption design: rejected",
            "seeds/qos-first-victims",
        ),
        (
            "victimOrder: qos-only",
            "The QoS class alone ranks victims.",
            "the pod preemption design: rejected",
            "races/priority-against-qos",
        ),
        (
            "runTimes: known",
            "Plugins of one's own may ask how long each pod still runs.",
            "the literature on scheduling with run time estimates",
            "",
        ),
        (
            "statusWrites: background",
            "The scheduling loop does not wait until the status of a pod that failed is written.",
            "feature gate SchedulerAsyncAPICalls",
            "",
        ),
        (
            "crossNodePreemption",
            "Victims on several nodes are searched for where no node helps by itself.",
            "the pod preemption design: not implemented",
            "seeds/cross-node-preemption",
        ),
        (
            "lowerPriorityAffinity",
            "Victims that the preemptor has affinity to are spared.",
            "the pod preemption design: not implemented",
            "seeds/lower-priority-affinity",
        ),
        (
            "victimSearch: one-by-one",
            "The two searches let all lower pods go and reprieve them one by one.",
            "the pod preemption design: not implemented",
            "seeds/victim-search",
        ),
        (
            "avoidEvictedNode",
            "A pod is kept for a while off a node whose kubelet evicted or rejected one like it.",
            "the pod preemption design",
            "seeds/avoid-evicted-node",
        ),
        (
            "percentageAbove100: cap",
            "A percentageOfNodesToScore above 100 acts as 100.",
            "documentation of kube-scheduler; validation refuses it",
            "seeds/percentage-above-100",
        ),
        (
            "minFeasibleNodes",
            "The number of feasible nodes below which a search does not stop.",
            "documentation of kube-scheduler says 50, the code 100",
            "seeds/percentage-above-100",
        ),
    ),
    *_rows(
        EXPERIMENT,
        KUBELET,
        (
            "evictionRanking: priority-first",
            "Under node pressure the priority ranks pods before their usage over requests.",
            "the pod preemption design",
            "",
        ),
    ),
)
