"""Answers tell the flow schema and the priority level of their requests; the users and schemas are those of a cluster
with the objects of kube-apiserver v1.36.3."""

from __future__ import annotations

import asyncio
import time
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


def test_a_level_that_is_full_of_hanging_requests_concerns_nobody_else() -> None:
    """A webhook that hangs holds all the seats of a level."""

    async def main(cluster: Cluster) -> None:
        async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writers.append(writer)
            while await reader.read(4096):
                pass

        writers: list[asyncio.StreamWriter] = []

        async with await asyncio.start_server(hang, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            await furnish(cluster)
            limited = {"nominalConcurrencyShares": 1, "lendablePercent": 0, "borrowingLimitPercent": 0}
            own = {"type": "Limited", "limited": {**limited, "limitResponse": {"type": "Reject"}}}
            subjects = [{"kind": "User", "user": {"name": "alice"}}]
            every = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
            schema = {
                "priorityLevelConfiguration": {"name": "own"},
                "matchingPrecedence": 10,
                "rules": [{"subjects": subjects, "resourceRules": [every]}],
            }
            webhook = {
                "name": "hangs.example.com",
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
                "clientConfig": {"url": f"https://127.0.0.1:{port}"},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 2,
                "failurePolicy": "Ignore",
            }
            for path, body in (
                (f"{FLOWS}/prioritylevelconfigurations", {"kind": "PriorityLevelConfiguration", "spec": own}),
                (f"{FLOWS}/flowschemas", {"kind": "FlowSchema", "spec": schema}),
                (
                    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
                    {"kind": "ValidatingWebhookConfiguration", "webhooks": [webhook]},
                ),
            ):
                group = path.removeprefix("/apis/").rpartition("/")[0]
                made = {"apiVersion": group, "metadata": {"name": "own"}, **body}
                answer = await cluster.http.post(path, json=made, headers=bearer("admin"))
                assert answer.status_code == 201, answer.text

            def create(name: str, user: str) -> Any:
                return cluster.http.post(
                    "/api/v1/namespaces/default/pods", json=gateway_cluster.pod(name), headers=bearer(user)
                )

            begin = time.monotonic()
            hanging = [asyncio.ensure_future(create(f"a{number}", "alice")) for number in range(3)]
            await asyncio.sleep(0.5)
            refused = await cluster.http.get("/api/v1/namespaces/default/pods", headers=bearer("alice"))
            assert refused.status_code == 429, "3 of 600 seats, and none is free"
            assert refused.text == "Too many requests, please try again later.\n"
            assert refused.headers["retry-after"] == "1"
            assert refused.headers["x-kubernetes-pf-flowschema-uid"]
            told = (await cluster.http.get("/metrics", headers=bearer("admin"))).text
            labels = 'flow_schema="own",priority_level="own"'
            assert f"apiserver_flowcontrol_current_executing_seats{{{labels}}} 3\n" in told
            assert f'apiserver_flowcontrol_rejected_requests_total{{{labels},reason="concurrency-limit"}} 1\n' in told
            assert (await cluster.http.get("/api/v1/pods", headers=bearer("scheduler"))).status_code == 200
            assert time.monotonic() - begin < 2, "they hang still"
            assert {one.status_code for one in await asyncio.gather(*hanging)} == {201}
            listed = await cluster.http.get("/api/v1/namespaces/default/pods", headers=bearer("alice"))
            assert len(listed.json()["items"]) == 3
            for writer in writers:
                writer.close()
                await writer.wait_closed()

    users = Settings(authenticator=Authenticator(USERS))
    gateway_cluster.run(main, settings=users, servers=({"authorization": ["AlwaysAllow"]},))
