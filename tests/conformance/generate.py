"""Make cases for the recorder: ``python -m tests.conformance.generate sampling --seed 1 --count 40 > cases.jsonl``."""

from __future__ import annotations

import argparse
import json
import sys

from tests.conformance.generators import (
    admitted,
    attachments,
    autoscaling,
    claims,
    cluster_autoscaling,
    clusters,
    devices,
    elections,
    fields,
    garbage,
    groups,
    jobs,
    kubelet,
    malformed,
    metadata,
    namespaces,
    patches,
    probes,
    quotas,
    requests,
    sequences,
    statuses,
    tables,
    timelines,
    volumes,
    warned,
    workloads,
    writes,
)

GENERATORS = {
    **dict.fromkeys(admitted.FAMILIES, admitted.case),
    **dict.fromkeys(attachments.FAMILIES, attachments.case),
    **dict.fromkeys(autoscaling.FAMILIES, autoscaling.case),
    **dict.fromkeys(claims.FAMILIES, claims.case),
    **dict.fromkeys(cluster_autoscaling.FAMILIES, cluster_autoscaling.case),
    **dict.fromkeys(quotas.FAMILIES, quotas.case),
    **dict.fromkeys(sequences.FAMILIES, sequences.case),
    **dict.fromkeys(timelines.FAMILIES, timelines.case),
    **dict.fromkeys(clusters.FAMILIES, clusters.case),
    **dict.fromkeys(groups.FAMILIES, groups.case),
    **dict.fromkeys(kubelet.FAMILIES, kubelet.case),
    **dict.fromkeys(elections.FAMILIES, elections.case),
    **dict.fromkeys(garbage.FAMILIES, garbage.case),
    **dict.fromkeys(probes.MAKERS, probes.case),
    **dict.fromkeys(jobs.FAMILIES, jobs.case),
    **dict.fromkeys(namespaces.FAMILIES, namespaces.case),
    **dict.fromkeys(warned.FAMILIES, warned.case),
    **dict.fromkeys(workloads.FAMILIES, workloads.case),
    **dict.fromkeys(volumes.FAMILIES, volumes.case),
    **dict.fromkeys(devices.FAMILIES, devices.case),
    **dict.fromkeys(statuses.FAMILIES, statuses.case),
    **dict.fromkeys(tables.FAMILIES, tables.case),
    **dict.fromkeys(writes.FAMILIES, writes.case),
    **dict.fromkeys(patches.FAMILIES, patches.case),
    **dict.fromkeys(malformed.FAMILIES, malformed.case),
    **dict.fromkeys(fields.FAMILIES, fields.case),
    **dict.fromkeys(metadata.FAMILIES, metadata.case),
    **dict.fromkeys(requests.FAMILIES, requests.case),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.generate", description=__doc__)
    parser.add_argument("family", choices=sorted(GENERATORS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    asked = parser.parse_args()
    for number in range(asked.count):
        case = GENERATORS[asked.family](asked.family, asked.seed, number)
        json.dump({"case": case}, sys.stdout, separators=(",", ":"), sort_keys=True)
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
