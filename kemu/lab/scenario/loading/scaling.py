"""``scale``: the same cluster, many times as large.

Role: one step of :mod:`kemu.lab.scenario.loading.loader`. Groups of nodes have so many times as many nodes, and so many
times as many pods of workloads arrive, in the same time. A load stays what it is: the nodes carry it.
"""

from __future__ import annotations

import dataclasses

from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import INVALID, Report
from kemu.lab.scenario.format.clusters import Nodes
from kemu.lab.scenario.format.schema import Spec
from kemu.lab.scenario.format.workloads import Arrivals, Workload
from kemu.runtime import distributions


def scaled(spec: Spec, report: Report) -> Spec:
    """With as many nodes and arrivals as ``scale`` says; reports what has no size that could be multiplied."""
    if spec.scale is INVALID or spec.scale == 1:
        return spec
    return dataclasses.replace(
        spec,
        nodes=[_nodes(one, spec.scale, ("spec", "nodes", n), report) for n, one in enumerate(spec.nodes)],
        workloads=[
            _workload(one, spec.scale, ("spec", "workloads", n), report) for n, one in enumerate(spec.workloads)
        ],
    )


def _nodes(group: Nodes, scale: int, path: Path, report: Report) -> Nodes:
    if group is INVALID or not isinstance(group.count, int):
        if group is not INVALID and group.name is not None:
            report.add((*path, "name"), "is one node, which scale cannot multiply", "namePrefix and count")
        return group
    return dataclasses.replace(group, count=group.count * scale)


def _workload(workload: Workload, scale: int, path: Path, report: Report) -> Workload:
    if workload is INVALID or workload.arrivals in (None, INVALID):
        if workload is not INVALID and workload.files is not None:
            report.add((*path, "trace"), "has its own pods, which scale cannot multiply", key=True)
        return workload
    return dataclasses.replace(workload, arrivals=_arrivals(workload.arrivals, scale))


def _arrivals(arrivals: Arrivals, scale: int) -> Arrivals:
    poisson, every, ramp, count = arrivals.poisson, arrivals.every, arrivals.ramp, arrivals.count
    if poisson not in (None, INVALID) and poisson.load is None:
        poisson = dataclasses.replace(poisson, rate_per_s=poisson.rate_per_s * scale)
    if ramp not in (None, INVALID):
        ramp = dataclasses.replace(ramp, from_per_s=ramp.from_per_s * scale, to_per_s=ramp.to_per_s * scale)
    if every not in (None, INVALID):
        every = distributions.scaled(every, 1 / scale)
    if count not in (None, INVALID):
        count *= scale
    return dataclasses.replace(arrivals, poisson=poisson, every=every, ramp=ramp, count=count)
