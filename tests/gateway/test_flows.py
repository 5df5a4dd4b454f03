"""Answers tell the flow schema and the priority level of their requests; the users and schemas are those of a cluster
with the objects of kube-apiserver v1.36.3."""

from __future__ import annotations

from typing import Any

from kemu.emulated.gateway.authentication.authenticators import Authenticator, authenticated
from kemu.emulated.gateway.settings import Settings
from kemu.emulated.objects import identities
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.kinds import flow_defaults
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster

FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"
USERS = {
    "admin": identities.ADMINISTRATOR,
    "alice": authenticated("alice", []),
    "node": identities.of_name("system:node:n"),
    "scheduler": identities.of_name("system:kube-scheduler"),
    "app": identities.of_name("system:serviceaccount:default:app"),
    "system": identities.of_name("system:serviceaccount:kube-system:app"),
}


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}"}


async def furnish(cluster: Cluster) -> dict[str, str]:
    """Makes the objects of every cluster; from the UIDs to names."""
    names = {}
    for plural, kind, objects in (
        ("prioritylevelconfigurations", "PriorityLevelConfiguration", flow_defaults.LEVELS),
        ("flowschemas", "FlowSchema", flow_defaults.SCHEMAS),
    ):
        for one in objects:
            body = {"apiVersion": f"{FLOWS[6:]}", "kind": kind, **convert.to_json(one)}
            made = await cluster.http.post(f"{FLOWS}/{plural}", json=body, headers=bearer("admin"))
            assert made.status_code == 201, made.text
            names[made.json()["metadata"]["uid"]] = one.metadata.name
    return names


def test_answers_name_schema_and_level() -> None:
    async def main(cluster: Cluster) -> None:
        names = await furnish(cluster)

        async def flow(user: str, path: str, method: str = "GET", **more: Any) -> tuple[str, str]:
            headers = bearer(user) if user else {}
            answer = await cluster.http.request(method, path, headers=headers, **more)
            found = [answer.headers[f"x-kubernetes-pf-{one}-uid"] for one in ("flowschema", "prioritylevel")]
            return names[found[0]], names[found[1]]

        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
        assert await flow("admin", "/api/v1/pods") == ("exempt", "exempt")
        assert await flow("alice", "/api/v1/pods") == ("global-default", "global-default")
        assert await flow("alice", "/version") == ("global-default", "global-default")
        seats = (await cluster.http.get("/metrics", headers=bearer("admin"))).text
        for level, number in (("catch-all", 13), ("exempt", 0), ("workload-low", 245)):
            assert f'apiserver_flowcontrol_nominal_limit_seats{{priority_level="{level}"}} {number}\n' in seats
        assert await flow("", "/api/v1/pods") == ("global-default", "global-default")  # refused, but classified
        assert await flow("node", "/api/v1/nodes/n") == ("system-node-high", "node-high")
        assert await flow("node", "/api/v1/pods") == ("system-nodes", "system")
        assert await flow("scheduler", f"{leases}/a") == ("system-leader-election", "leader-election")
        assert await flow("scheduler", leases) == ("kube-scheduler", "workload-high")
        assert await flow("app", "/api/v1/pods") == ("service-accounts", "workload-low")
        assert await flow("system", "/api/v1/pods") == ("kube-system-service-accounts", "workload-high")
        assert await flow("app", "/apis") == ("service-accounts", "workload-low")

        own = {
            "priorityLevelConfiguration": {"name": "system"},
            "matchingPrecedence": 10,
            "rules": [
                {
                    "subjects": [{"kind": "User", "user": {"name": "alice"}}],
                    "resourceRules": [
                        {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["default"]}
                    ],
                }
            ],
        }
        body = {"apiVersion": FLOWS[6:], "kind": "FlowSchema", "metadata": {"name": "own"}, "spec": own}
        made = await cluster.http.post(f"{FLOWS}/flowschemas", json=body, headers=bearer("admin"))
        names[made.json()["metadata"]["uid"]] = "own"
        assert await flow("alice", "/api/v1/namespaces/default/pods") == ("own", "system")
        assert await flow("alice", "/api/v1/namespaces/default/pods/a") == ("global-default", "global-default")
        assert await flow("alice", "/api/v1/pods") == ("global-default", "global-default")

    gateway_cluster.run(main, settings=Settings(authenticator=Authenticator(USERS)))
