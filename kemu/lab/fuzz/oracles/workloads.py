"""Objects that keep pods: they have what they ask for where there is room, and their statuses say what is so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kemu.emulated.objects.amounts import requests
from kemu.lab.fuzz import facts
from kemu.lab.fuzz.facts import Facts
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2

REACHED_S = 120
"""Longer than rollouts of a drawn scenario take once nothing disturbs them."""
TOLD_S = 30
RECOUNTED_S = 310
"""--resource-quota-sync-period is five minutes."""
KEEP_PODS = ("replicasets", "statefulsets", "replicationcontrollers")


def workloads_reach_their_spec(run: Facts) -> Iterator[str]:
    """A ReplicaSet or StatefulSet has as many ready pods as it asks for.

    Taken for granted: the cluster has been quiet for two minutes and no node is lost; no quota, no crashing containers,
    no usage, nothing but room, cordons and taints decides where its pods go; one node that is open to them has room
    for every pod of the cluster and all that are missing; none of its claims waits for a volume, or for a node that
    is gone, from which a volume is detached after six minutes.
    """
    if not run.is_quiet_for(REACHED_S) or run.lost_nodes or run.objects("resourcequotas"):
        return
    if any(facts.has_required_anti_affinity(pod) for pod in run.pods):
        return
    for plural in KEEP_PODS:
        for owner in run.objects(plural):
            wanted = owner.spec.replicas
            if facts.is_going(owner) or not wanted or not _is_simple(owner.spec.template):
                continue
            if plural == "statefulsets" and _waits_for_volumes(run, owner):
                continue
            have = facts.pods_of(run, owner)
            ready = sum(1 for pod in have if facts.is_ready(pod))
            if ready < wanted and _is_room(run, owner.spec.template, wanted):
                yield f"{plural} {facts.name_of(owner)} has {ready} ready pods of {wanted}"


def _is_simple(template: core_v1_pb2.PodTemplateSpec) -> bool:
    """Whether its pods run and are ready wherever they are put."""
    notes = template.metadata.annotations
    names = ("exit-code", "usage", "image-pull-error", "run-seconds", "probes", "post-start-error")
    if any(note.startswith(tuple(f"kemu.dev/{name}" for name in names)) for note in sorted(notes)):
        return False
    as_pod = core_v1_pb2.Pod(metadata=template.metadata, spec=template.spec)
    containers = (*template.spec.initContainers, *template.spec.containers)
    return facts.goes_anywhere(as_pod) and all(container.imagePullPolicy != "Never" for container in containers)


def _waits_for_volumes(run: Facts, owner: apps_v1_pb2.StatefulSet) -> bool:
    of_gone_nodes = {
        attachment.spec.source.persistentVolumeName
        for attachment in run.objects("volumeattachments")
        if attachment.spec.nodeName not in run.nodes
    }
    names = tuple(f"{claim.metadata.name}-{owner.metadata.name}-" for claim in owner.spec.volumeClaimTemplates)
    return any(
        claim.status.phase != "Bound" or claim.spec.volumeName in of_gone_nodes
        for claim in run.objects("persistentvolumeclaims")
        if claim.metadata.namespace == owner.metadata.namespace and claim.metadata.name.startswith(names)
    )


def _is_room(run: Facts, template: core_v1_pb2.PodTemplateSpec, wanted: int) -> bool:
    """On one node for everything that there is, and that is missing."""
    missing = core_v1_pb2.Pod(metadata=template.metadata, spec=template.spec)
    total: dict[str, int] = {"pods": len(run.pods) + wanted}
    for pod in [*run.pods, *([missing] * wanted)]:
        for name, amount in requests.pod_requests(pod).items():
            total[name] = total.get(name, 0) + amount
    for node in run.nodes.values():
        room = facts.allocatable(node)
        if facts.admits(node, missing) and all(amount <= room.get(name, 0) for name, amount in total.items() if amount):
            return True
    return False


def statuses_are_told(run: Facts) -> Iterator[str]:
    """The status of a ReplicaSet, StatefulSet or ReplicationController counts the pods that are there.

    Taken for granted: the cluster is quiet, and no pod has changed for half a minute.
    """
    if not run.is_quiet_for(TOLD_S) or run.calm_s < TOLD_S:
        return
    for plural in KEEP_PODS:
        if plural.removesuffix("s") not in run.scenario.controllers:
            continue
        for owner in run.objects(plural):
            if facts.is_going(owner):
                continue
            # A StatefulSet counts those that are going, too, as long as they are ready (computeReplicaStatus).
            have = facts.pods_of(run, owner, with_going=plural == "statefulsets")
            ready = sum(1 for pod in have if facts.is_ready(pod))
            if owner.status.readyReplicas != ready:
                yield f"{plural} {facts.name_of(owner)} says {owner.status.readyReplicas} pods are ready; {ready} are"


def budgets_are_current(run: Facts) -> Iterator[str]:
    """The status of a disruption budget counts the healthy pods that there are.

    Taken for granted: the cluster is quiet, no pod has changed for half a minute, and the controllers are those that
    the scenario needs, or the disruption controller is among those that it names.
    """
    if not run.is_quiet_for(TOLD_S) or run.calm_s < TOLD_S:
        return
    stated = run.scenario.resolved["spec"].get("controllers")
    if stated is not None and "disruption" not in stated:
        return
    for budget in run.objects("poddisruptionbudgets"):
        pods = facts.selected(run, budget.metadata.namespace, budget.spec.selector)
        if any(facts.controller_of(pod) is None for pod in pods):
            continue
        healthy = sum(1 for pod in pods if facts.is_ready(pod) and not facts.is_going(pod))
        told = budget.status.currentHealthy
        if told != healthy:
            yield f"the budget {facts.name_of(budget)} says {told} pods are healthy; {healthy} are"


def quotas_are_current(run: Facts) -> Iterator[str]:
    """The status of a quota counts the pods that there are.

    Taken for granted: for as long as it takes until everything is counted anew, the cluster is quiet and no pod has
    changed. A quota controller that counts before it has heard of a pod counts too few until then, in Kubernetes, too;
    and so it does where the run was over before, as to count anew alone keeps no run going.
    """
    is_calm = run.is_quiet_for(RECOUNTED_S) and run.calm_s >= RECOUNTED_S
    is_recounted = run.passed_s >= RECOUNTED_S
    if not is_calm or "resourcequota" not in run.scenario.controllers:
        return
    for quota in run.objects("resourcequotas"):
        if "pods" not in quota.spec.hard or quota.spec.scopes:
            continue
        counted = sum(
            1 for pod in run.pods if pod.metadata.namespace == quota.metadata.namespace and not facts.is_over(pod)
        )
        told = facts.whole(quota.status.used["pods"]) if "pods" in quota.status.used else 0
        if told > counted or (told < counted and is_recounted):
            yield f"the quota {facts.name_of(quota)} counts {told} pods; there are {counted}"


def jobs_go_on(run: Facts) -> Iterator[str]:
    """A Job that is neither over nor suspended has active pods.

    Taken for granted: the cluster is quiet, and no pod has changed for two minutes and the back-off of the Job: ten
    seconds, twice as long after each further failure, ten minutes at most.
    """
    if not run.is_quiet_for(REACHED_S) or run.calm_s < REACHED_S or "job" not in run.scenario.controllers:
        return
    if run.objects("resourcequotas"):
        return
    for job in run.objects("jobs"):
        is_over = any(one.type in ("Complete", "Failed") and one.status == "True" for one in job.status.conditions)
        if is_over or job.spec.suspend or facts.is_going(job) or facts.pods_of(run, job):
            continue
        failed = job.status.failed + len(job.status.uncountedTerminatedPods.failed)
        if failed and run.calm_s < REACHED_S + min(10 << min(failed - 1, 6), 600):
            continue
        if any(controller is not None and controller[2] == job.metadata.uid and facts.is_going(pod)
               for pod in run.pods for controller in [facts.controller_of(pod)]):  # fmt: skip
            continue
        yield f"the Job {facts.name_of(job)} is not over, and has no pods"


def owned_pods_have_owners(run: Facts) -> Iterator[str]:
    """What a removed object owned is removed or set free.

    Taken for granted: the cluster is quiet for a minute, the garbage collector runs, and the owner has been away for a
    minute: controllers remove Jobs and ReplicaSets at any time.
    """
    if not run.is_quiet_for(60) or "garbage-collector" not in run.scenario.controllers:
        return
    known: set[str] = set()
    for plural in (*KEEP_PODS, "jobs", "daemonsets", "deployments", "cronjobs", "nodes"):
        known |= {item.metadata.uid for item in run.objects(plural)}
        known |= {item.metadata.uid for item in run.removed_since(plural, run.since(60))}
    items: list[Any] = [*run.pods, *run.objects("replicasets")]
    for item in items:
        controller = facts.controller_of(item)
        if controller is not None and controller[2] not in known and not facts.is_going(item):
            yield f"{facts.name_of(item)} is there, and {controller[0]} {controller[1]}, which owned it, is not"
