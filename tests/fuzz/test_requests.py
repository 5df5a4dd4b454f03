"""The fuzzer of ``kemu up``: what it draws, and a few hundred requests of it that a gateway has to survive."""

from __future__ import annotations

import collections

from tests.fuzz.requests import NAMESPACES, Draw, Resource
from tests.fuzz.up import EXPECTED, SAID
from tests.gateway.gateway_cluster import Cluster, run

RESOURCES = [
    Resource("/api/v1", "pods", "Pod", "v1", True, frozenset()),
    Resource("/api/v1", "pods/status", "Pod", "v1", True, frozenset()),
    Resource("/api/v1", "secrets", "Secret", "v1", True, frozenset()),
    Resource("/apis/apps/v1", "deployments", "Deployment", "apps/v1", True, frozenset()),
    Resource("/apis/rbac.authorization.k8s.io/v1", "roles", "Role", "rbac.authorization.k8s.io/v1", True, frozenset()),
]
REQUESTS = 300


def test_a_seed_draws_the_same_requests_upgrades_and_bytes() -> None:
    one, same, other = (Draw(seed, RESOURCES) for seed in ("1", "1", "2"))
    drawn = [(one.request(), one.upgrade(), one.garbage()) for _ in range(50)]
    assert drawn == [(same.request(), same.upgrade(), same.garbage()) for _ in range(50)]
    assert drawn != [(other.request(), other.upgrade(), other.garbage()) for _ in range(50)]


def test_a_gateway_answers_all_of_them_and_works_on() -> None:
    async def main(cluster: Cluster) -> None:
        for namespace in NAMESPACES:
            await cluster.http.post("/api/v1/namespaces", json={"metadata": {"name": namespace}})
        draw = Draw("1", RESOURCES)
        codes: collections.Counter[int] = collections.Counter()
        for _ in range(REQUESTS):
            request = draw.request()
            if request.is_watch or not request.target.isascii() or len(request.method) > 20:
                continue
            answer = await cluster.http.request(
                request.method, request.target, headers=request.headers, content=request.body
            )
            codes[answer.status_code] += 1
            is_expected = answer.status_code in EXPECTED or any(one in answer.content for one in SAID)
            assert answer.status_code < 500 or is_expected, (request, answer.text[:300])
            if answer.status_code < 300:
                draw.learn(answer.headers.get("content-type", ""), answer.content)
        assert codes[200] > 10, codes
        assert codes[201] > 10, codes
        assert codes[422] > 5, codes
        assert (await cluster.http.get("/api/v1/namespaces")).status_code == 200

    run(main)
