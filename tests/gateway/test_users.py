"""Nobody without a token changes anything, and everybody does what his roles allow: asked over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.gateway.authentication.authenticators import Authenticator
from kemu.emulated.gateway.settings import Settings
from kemu.emulated.objects import identities
from kemu.emulated.objects.identities import User
from tests.gateway.gateway_cluster import Cluster, pod, run

NODE = User("system:node:n1", (identities.NODES, identities.AUTHENTICATED))
TOKENS = {
    "admin": identities.ADMINISTRATOR,
    "nobody-special": User("carol", (identities.AUTHENTICATED,)),
    "n1": NODE,
}
SETTINGS = Settings(authenticator=Authenticator(TOKENS))
WRITES = [
    ("POST", "/api/v1/namespaces/default/pods", pod()),
    ("PUT", "/api/v1/namespaces/default/pods/a", pod()),
    ("PATCH", "/api/v1/namespaces/default/pods/a", {"metadata": {"labels": {"a": "b"}}}),
    ("PATCH", "/api/v1/namespaces/default/pods/a/status", {"status": {"phase": "Running"}}),
    ("DELETE", "/api/v1/namespaces/default/pods/a", None),
    ("DELETE", "/api/v1/namespaces/default/pods", None),
    ("POST", "/api/v1/namespaces/default/pods/a/binding", {"target": {"kind": "Node", "name": "n1"}}),
    ("POST", "/api/v1/namespaces/default/pods/a/eviction", {"metadata": {"name": "a", "namespace": "default"}}),
    ("DELETE", "/api/v1/nodes/n1", None),
    ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {"audiences": []}}),
    ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "metadata": {"name": "mine"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    }),
]  # fmt: skip
READS = [
    "/api",
    "/apis",
    "/openapi/v3",
    "/api/v1",
    "/api/v1/pods",
    "/api/v1/pods?watch=true",
    "/api/v1/secrets",
    "/metrics",
]


async def ask(cluster: Cluster, token: str | None, method: str, path: str, body: Any = None, **headers: str) -> Any:
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    if body is not None and method == "PATCH":
        headers["Content-Type"] = "application/merge-patch+json"
    return await cluster.http.request(method, path, json=body, headers=headers)


async def prepare(cluster: Cluster) -> None:
    node = {"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}
    assert (await ask(cluster, "admin", "POST", "/api/v1/nodes", node)).status_code == 201
    assert (await ask(cluster, "admin", "POST", "/api/v1/namespaces/default/pods", pod())).status_code == 201


@pytest.mark.parametrize(("token", "code"), [(None, 403), ("wrong", 401), ("", 403), ("nobody-special", 403)])
def test_without_a_right_nothing_is_changed(token: str | None, code: int) -> None:
    async def main(cluster: Cluster) -> None:
        await prepare(cluster)
        before = (await ask(cluster, "admin", "GET", "/api/v1/pods")).json()
        for method, path, body in WRITES:
            answer = await ask(cluster, token, method, path, body)
            assert answer.status_code == code, (method, path, answer.text)
            assert answer.json()["kind"] == "Status"
        assert (await ask(cluster, "admin", "GET", "/api/v1/pods")).json() == before

    run(main, settings=SETTINGS)


def test_whoever_shows_nothing_reads_nothing_but_the_version_and_the_health() -> None:
    async def main(cluster: Cluster) -> None:
        await prepare(cluster)
        for path in READS:
            assert (await ask(cluster, None, "GET", path)).status_code == 403, path
            assert (await ask(cluster, "wrong", "GET", path)).status_code == 401, path
        for path in ("/version", "/healthz", "/livez", "/readyz"):
            assert (await ask(cluster, None, "GET", path)).status_code == 200, path
        for path in ("/api", "/apis", "/api/v1"):
            assert (await ask(cluster, "nobody-special", "GET", path)).status_code == 200, path

    run(main, settings=SETTINGS)


def test_only_who_may_impersonate_does() -> None:
    async def main(cluster: Cluster) -> None:
        await prepare(cluster)
        as_admin = {"Impersonate-User": "kubernetes-admin", "Impersonate-Group": "system:masters"}
        answer = await ask(cluster, "nobody-special", "GET", "/api/v1/pods", **as_admin)
        assert answer.status_code == 403
        asks = 'User "carol" cannot impersonate-on:user-info:list resource "pods" in API group "" at the cluster scope'
        assert answer.json()["message"] == f"pods is forbidden: {asks}"
        as_carol = {"Impersonate-User": "carol"}
        answer = await ask(cluster, "admin", "GET", "/api/v1/pods", **as_carol)
        assert 'User "carol" cannot list resource "pods"' in answer.json()["message"]

    run(main, settings=SETTINGS)


def test_who_may_act_as_another_in_one_thing_may_nothing_else() -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    be = {"apiGroups": ["authentication.k8s.io"], "resources": ["users", "nodes"], "resourceNames": ["dave", "n1"]}
    be["verbs"] = ["impersonate:user-info", "impersonate:arbitrary-node"]
    do = {"apiGroups": [""], "resources": ["pods", "nodes"]}
    do["verbs"] = ["impersonate-on:user-info:list", "impersonate-on:arbitrary-node:get"]

    async def main(cluster: Cluster) -> None:
        await prepare(cluster)

        async def bind(name: str, rules: list[Any], user: str) -> None:
            role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
            subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
            made = {"metadata": {"name": name}, "rules": rules}
            assert (await ask(cluster, "admin", "POST", f"{rbac}/clusterroles", made)).status_code == 201
            made = {"metadata": {"name": name}, "subjects": [subject], "roleRef": role}
            assert (await ask(cluster, "admin", "POST", f"{rbac}/clusterrolebindings", made)).status_code == 201

        await bind("act", [be, do], "carol")
        await bind("see", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "delete"]}], "dave")
        for expected, name, method, path in (
            (200, "dave", "GET", "/api/v1/pods"),
            (403, "dave", "DELETE", "/api/v1/namespaces/default/pods/a"),
            (403, "dave", "GET", "/api/v1/nodes"),
            (403, "erin", "GET", "/api/v1/pods"),
            (200, "system:node:n1", "GET", "/api/v1/nodes/n1"),
            (403, "system:node:n1", "DELETE", "/api/v1/nodes/n1"),
        ):
            answer = await ask(cluster, "nobody-special", method, path, **{"Impersonate-User": name})
            assert answer.status_code == expected, (name, method, path, answer.text)

    run(main, settings=SETTINGS)


def test_a_kubelet_touches_what_is_its_own() -> None:
    async def main(cluster: Cluster) -> None:
        await prepare(cluster)
        await ask(cluster, "admin", "POST", "/api/v1/nodes", {"metadata": {"name": "n2"}})
        await ask(cluster, "admin", "POST", "/api/v1/namespaces/default/pods", pod("own", nodeName="n1"))
        await ask(cluster, "admin", "POST", "/api/v1/namespaces/default/pods", pod("others", nodeName="n2"))
        running = {"status": {"phase": "Running"}}
        labels = {"metadata": {"labels": {"node-restriction.kubernetes.io/a": "b"}}}
        for expected, method, path, body in (
            (200, "PATCH", "/api/v1/namespaces/default/pods/own/status", running),
            (403, "PATCH", "/api/v1/namespaces/default/pods/others/status", running),
            (200, "PATCH", "/api/v1/nodes/n1/status", {"status": {"phase": ""}}),
            (403, "PATCH", "/api/v1/nodes/n2/status", {"status": {"phase": ""}}),
            (403, "PATCH", "/api/v1/nodes/n1", labels),
            (403, "DELETE", "/api/v1/nodes/n1", None),
            (403, "DELETE", "/api/v1/namespaces/default/pods/others", None),
            (403, "POST", "/api/v1/namespaces/default/pods", pod("new")),
            (403, "GET", "/api/v1/namespaces/default/secrets/s", None),
            (403, "GET", "/api/v1/pods", None),
            (200, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", None),
            (200, "GET", "/api/v1/nodes/n1", None),
            (403, "GET", "/api/v1/nodes/n2", None),
            (200, "DELETE", "/api/v1/namespaces/default/pods/own", {"gracePeriodSeconds": 0}),
        ):
            answer = await ask(cluster, "n1", method, path, body)
            assert answer.status_code == expected, (method, path, answer.text)

    run(main, settings=SETTINGS)


def test_who_has_no_right_learns_nothing_else() -> None:
    async def main(cluster: Cluster) -> None:
        await prepare(cluster)
        for token, code in (("nobody-special", 403), ("admin", 415)):
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/plain"}
            path = "/api/v1/namespaces/default/pods"
            assert (await cluster.http.post(path, content=b"x", headers=headers)).status_code == code
        for token, code in (("nobody-special", 403), ("admin", 405)):
            path = "/api/v1/namespaces/default/pods/a/binding"
            assert (await ask(cluster, token, "GET", path)).status_code == code
            exec_ = await ask(cluster, token, "POST", "/api/v1/namespaces/default/pods/a/exec")
            assert exec_.status_code == (403 if code == 403 else 400)

    run(main, settings=SETTINGS)
