"""Three teams that share a cohort, and Jobs of which most have to wait."""

from __future__ import annotations

from typing import Any

from tests.clients.kueue.ledger import TEAM, Quota

QUOTAS = {"amber": Quota(20_000, 40_000), "blue": Quota(12_000, 40_000), "cyan": Quota(8_000, 12_000)}
"""By team, in milli-CPU. Amber and blue borrow what is free, cyan no more than 4 CPUs."""
RUN_S = 2
_SHARES = ("amber", "amber", "amber", "blue", "cyan")
"""Who has the Jobs, in turn: amber has more than its part of the quota."""


def setting() -> list[dict[str, Any]]:
    """The objects of the queues, of which all are named after the teams."""
    kind: dict[str, Any] = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    found = [{**kind, "kind": "ResourceFlavor", "metadata": {"name": "plain"}}]
    for team, quota in QUOTAS.items():
        limit: dict[str, Any] = {"name": "cpu", "nominalQuota": f"{quota.nominal}m"}
        if quota.most < sum(one.nominal for one in QUOTAS.values()):
            limit["borrowingLimit"] = f"{quota.most - quota.nominal}m"
        groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "plain", "resources": [limit]}]}]
        spec = {"cohortName": "colours", "namespaceSelector": {}, "resourceGroups": groups}
        found.append({**kind, "kind": "ClusterQueue", "metadata": {"name": team}, "spec": spec})
        metadata = {"name": team, "namespace": "default"}
        found.append({**kind, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": team}})
    return found


def job(number: int) -> dict[str, Any]:
    """One to three CPUs; every fourth Job has two pods."""
    team, pods, cpu = _SHARES[number % len(_SHARES)], 2 if number % 4 == 0 else 1, 1 + number % 3
    container = {
        "name": "main",
        "image": "busybox:1",
        "command": ["sleep", str(RUN_S)],
        "resources": {"requests": {"cpu": str(cpu)}},
    }
    template = {
        "metadata": {"labels": {TEAM: team}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{team}-{number}",
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": team},
        },
        "spec": {"parallelism": pods, "completions": pods, "template": template},
    }
