"""From a load to a rate: how often pods arrive that keep a share of the nodes requested.

Role: used by :mod:`kemu.lab.scenario.loading.timelines` once the nodes are known. By Little's law, pods that request
``r`` for ``t`` seconds on average and arrive ``n`` times a second keep ``n * r * t`` requested, so a load of 0.95 is
the rate ``0.95 * allocatable / (r * t)``. Requests count, not usage: they are what a scheduler fills nodes by, and what
the metric ``utilisation`` counts.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

from kemu.emulated.objects import meta
from kemu.emulated.objects.amounts import requests
from kemu.emulated.objects.defaulting.pods import default_pod
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import Report
from kemu.lab.scenario.format.clusters import Node
from kemu.lab.scenario.format.workloads import Arrivals, Workload
from kemu.lab.scenario.loading.objects import manifests
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime import distributions
from kemu.runtime.words import did_you_mean

_PATH: Path = ("arrivals", "poisson")


def settled(workload: Workload, nodes: Sequence[Node], where: Path, report: Report) -> Arrivals | None:
    """The arrivals of a workload that states a load, with its rate; None, and a complaint, where there is none."""
    assert workload.arrivals is not None
    assert workload.template is not None
    poisson = workload.arrivals.poisson
    assert poisson is not None
    assert poisson.load is not None
    pod = meta.copied(workload.template)
    default_pod(pod)
    mean_s = _mean_run_s(workload, pod, where, report)
    requested = requests.pod_requests(pod)
    wanted = requested.get(poisson.of, 0)
    of = (*where, *_PATH, "of")
    if not wanted:
        offered = [name for name, amount in requested.items() if amount]
        hint = did_you_mean(poisson.of, offered) or (f"they request {', '.join(offered)}" if offered else "")
        report.add(of, f"the pods request no {poisson.of}, {_SO}", hint)
    if mean_s is None or not wanted or _has_mistakes(report):
        return None
    capacity = sum(_allocatable(node, poisson.of) for node in nodes)
    if not capacity:
        report.add(of, f"the nodes have no {poisson.of} that pods can be given when the run starts")
        return None
    rate = poisson.load * capacity / (wanted * mean_s)
    return dataclasses.replace(workload.arrivals, poisson=dataclasses.replace(poisson, rate_per_s=rate))


def told(workloads: Iterable[Workload]) -> list[str]:
    """The rate of each workload that states a load, as a sentence."""
    stated = [(one.name, one.arrivals.poisson) for one in workloads if one.arrivals is not None]
    return [
        f"workload {name}: a load of {poisson.load:g} of {poisson.of} is {poisson.rate_per_s:.4g}/s"
        for name, poisson in stated
        if poisson is not None and poisson.load is not None
    ]


def _has_mistakes(report: Report) -> bool:
    """Whether nodes may be missing because of mistakes elsewhere, which have been reported."""
    return any(one.path.startswith(("spec.nodes", "spec.autoscaler", "spec.manifests")) for one in report.problems)


def _allocatable(node: Node, resource: str) -> int:
    amounts = node.message.status.allocatable
    return requests.resource_list({resource: amounts[resource]})[resource] if resource in amounts else 0


def _mean_run_s(workload: Workload, pod: core_v1_pb2.Pod, where: Path, report: Report) -> float | None:
    """How long a pod runs on average, in seconds; None, and a complaint, where that is not a number above 0."""
    place: Path = (*where, "life", "runSeconds")
    stated, annotation = workload.life.run_s, pod.metadata.annotations.get(manifests.RUN_SECONDS)
    if stated is not None:
        average = distributions.parse(stated).average
    elif annotation is not None:
        place = (*where, "pods", "metadata", "annotations", manifests.RUN_SECONDS)
        try:
            average = float(annotation)
        except ValueError:  # which is reported with the template
            return None
    else:
        report.add((*where, *_PATH, "load"), f"the pods run for ever, {_SO}", "state life.runSeconds")
        return None
    policy = pod.spec.restartPolicy
    if policy == "Always" or (policy == "OnFailure" and workload.life.exit_code not in (None, 0)):
        text = f"starts pods anew when they have run, so that they run for ever, {_SO}"
        report.add((*where, "pods", "spec", "restartPolicy"), text)
    elif pod.spec.HasField("activeDeadlineSeconds"):
        text = "ends pods before their time, so that their mean run time is not known"
        report.add((*where, "pods", "spec", "activeDeadlineSeconds"), text, "state a rate in place of the load")
    elif math.isinf(average):
        report.add(place, f"has no finite mean, {_SO}")
    elif not average:
        report.add(place, f"has a mean of 0, {_SO}")
    else:
        return average
    return None


_SO = "so no rate makes this load"
