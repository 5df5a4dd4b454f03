"""Watches of versions that a webhook converts, and webhooks that harm: they are bounded, named, and harm no others."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from kemu.emulated.apiserver.custom import conversions as converting
from tests.admission import webhook_server
from tests.admission.webhook_server import Server
from tests.gateway import gateway_cluster
from tests.gateway.custom import conversions, converters, player
from tests.gateway.custom.cases import APPLY, DEFINITIONS, MERGE, Step
from tests.gateway.gateway_cluster import Cluster

V1, V2 = conversions.V1, conversions.V2


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with webhook_server.serving() as found:
        found.reviews.update(converters.RESPONSES)
        yield found


def play(server: Server, main: Callable[[Cluster], Awaitable[None]], **settings: Any) -> None:
    """With the kind, and objects ``a`` and ``b``. ``settings``: of the API server."""
    server.asked.clear()

    async def begin(cluster: Cluster) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "conversions"}}
        for step in (
            Step("POST", "/api/v1/namespaces", namespace),
            Step("POST", DEFINITIONS, conversions.DEFINITION),
            Step("GET", conversions.NAME, until="Established"),
            Step("POST", V1, conversions.one("a", address="a:80")),
            Step("POST", V1, conversions.one("b", address="b:81")),
        ):
            answer = await player.send(cluster.http, step, server)
            assert answer["code"] < 300, answer
        await main(cluster)

    gateway_cluster.run(begin, servers=(settings,))


async def to(cluster: Cluster, server: Server, path: str) -> None:
    """Another webhook converts from now on."""
    step = Step("PATCH", conversions.NAME, {"spec": {"conversion": conversions.conversion(path)}}, MERGE)
    assert (await player.send(cluster.http, step, server))["code"] == 200


async def events(cluster: Cluster, path: str, number: int, **query: Any) -> list[tuple[str, str, Any]]:
    """Of a watch of two seconds, on a connection of its own: type, name and port or address."""
    query = {"watch": "true", "timeoutSeconds": "2", **query}
    answer = await cluster.connection(number).get(path, params=query)
    assert answer.status_code == 200, answer.text
    found = []
    for line in answer.text.splitlines():
        event = json.loads(line)
        obj = event["object"]
        spec = obj.get("spec") or {}
        found.append((event["type"], obj["metadata"].get("name", ""), spec.get("port", spec.get("address"))))
    return found


def test_watches_of_every_version_are_told_in_order(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        version = (await cluster.http.get(V2)).json()["metadata"]["resourceVersion"]
        watches = [
            asyncio.create_task(events(cluster, V2, 2)),
            asyncio.create_task(events(cluster, V1, 3, resourceVersion=version)),
            asyncio.create_task(events(cluster, V2, 4, resourceVersion=version, fieldSelector="spec.port=90")),
        ]
        await asyncio.sleep(0.3)
        http = cluster.http
        for port in range(88, 92):
            patch = json.dumps({"spec": {"port": port}})
            answer = await http.patch(f"{V2}/a", content=patch, headers={"content-type": MERGE})
            assert answer.status_code == 200
        await http.delete(f"{V1}/b")
        two, one, selected = [await one for one in watches]
        changes = [("MODIFIED", "a", port) for port in range(88, 92)]
        assert two == [("ADDED", "a", 80), ("ADDED", "b", 81), *changes, ("DELETED", "b", 81)]
        assert one == [*(("MODIFIED", "a", f"a:{port}") for port in range(88, 92)), ("DELETED", "b", "b:81")]
        assert selected == [("ADDED", "a", 90), ("DELETED", "a", 90)]
        # What was missed is told from the version's own past.
        assert (await events(cluster, V2, 5, resourceVersion=version))[: len(changes)] == changes

    play(server, main)


def test_what_is_cached_is_converted_once(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        server.asked.clear()
        for _ in range(3):
            assert len((await cluster.http.get(V2)).json()["items"]) == 2
        assert [len(review["request"]["objects"]) for _, review in server.asked] == [1, 1]
        await cluster.http.patch(
            f"{V1}/a", content=json.dumps({"spec": {"address": "c:1"}}), headers={"content-type": MERGE}
        )
        server.asked.clear()
        assert (await cluster.http.get(V2)).json()["items"][0]["spec"]["host"] == "c"
        assert [review["request"]["objects"][0]["metadata"]["name"] for _, review in server.asked] == ["a"]
        # Nothing that travels says which version the store has.
        assert "resourceVersion" not in server.asked[0][1]["request"]["objects"][0]["metadata"]

    play(server, main)


def test_a_version_of_its_own_needs_no_webhook(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        server.asked.clear()
        await to(cluster, server, "refuse")
        body = json.dumps(conversions.one("c", replicas=2))
        assert (await cluster.http.get(V1)).status_code == 200
        assert (
            await cluster.http.post(V1, content=body, headers={"content-type": "application/json"})
        ).status_code == 201
        assert (await cluster.http.get(f"{V1}/c/scale")).json()["spec"]["replicas"] == 2
        assert (await cluster.http.delete(f"{V1}/c")).status_code == 200
        assert server.asked == []

    play(server, main)


def test_watches_end_where_conversion_fails_and_begin_again(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        broken: list[bool] = [False]
        server.reviews["sometimes"] = lambda review: converters.RESPONSES["refuse" if broken[0] else "convert"](review)
        await to(cluster, server, "sometimes")
        version = (await cluster.http.get(V2)).json()["metadata"]["resourceVersion"]
        began = time.monotonic()
        watch = asyncio.create_task(events(cluster, V2, 2))
        await asyncio.sleep(0.3)
        broken[0] = True
        patch = json.dumps({"spec": {"address": "a:7"}})
        assert (await cluster.http.patch(f"{V1}/a", content=patch, headers={"content-type": MERGE})).status_code == 200
        assert [name for _, name, _ in await watch] == ["a", "b"]
        assert time.monotonic() - began < 1.5, "it ended at its time alone"
        refused = await cluster.http.get(V2)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert "no such luck" in refused.json()["message"]
        assert (await cluster.http.get(f"{V2}/a")).status_code == 500
        broken[0] = False
        assert (await events(cluster, V2, 3, resourceVersion=version))[:1] == [("MODIFIED", "a", 7)]
        assert (await cluster.http.get(V2)).status_code == 200

    play(server, main)


def test_a_webhook_that_hangs_is_given_up_and_harms_nobody(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converting, "TIMEOUT_S", 1.0)
    monkeypatch.setattr(converting, "CALLS", 2)

    async def main(cluster: Cluster) -> None:
        await to(cluster, server, "hang")
        began = time.monotonic()
        gets = [asyncio.create_task(cluster.connection(2 + n).get(f"{V2}/a")) for n in range(20)]
        lists = [asyncio.create_task(cluster.connection(30 + n).get(V2)) for n in range(3)]
        await asyncio.sleep(0.2)
        for other in (f"{V1}/a", V1, "/api/v1/namespaces"):
            assert (await cluster.http.get(other)).status_code == 200
        assert time.monotonic() - began < 0.9
        for answer in [await one for one in gets]:
            assert answer.status_code == 500
            assert answer.json()["message"].startswith(
                "conversion webhook for convert.example.com/v1, Kind=Gizmo failed: "
            )
            assert answer.json()["message"].endswith("context deadline exceeded")
        assert {(await one).status_code for one in lists} == {429}
        # Who waited for the first ones does not wait for more of them.
        assert time.monotonic() - began < 3

    play(server, main)


@pytest.mark.parametrize(
    ("path", "told"),
    [("endless", "larger than 16 MiB"), ("huge", "returned too large an object"), ("deep", "json parse error")],
)
def test_a_webhook_that_answers_too_much_is_refused(server: Server, path: str, told: str) -> None:
    def huge(review: dict[str, Any]) -> dict[str, Any]:
        answer = converters.RESPONSES["convert"](review)
        answer["response"]["convertedObjects"][0]["spec"]["host"] = "x" * (4 << 20)
        return answer

    server.reviews["huge"] = huge

    async def main(cluster: Cluster) -> None:
        await to(cluster, server, path)
        answer = await cluster.http.get(f"{V2}/a")
        assert answer.status_code == 500
        assert told in answer.json()["message"]

    play(server, main)


def test_applies_meet_managers_of_other_versions(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        async def apply(path: str, body: dict[str, Any], manager: str) -> dict[str, Any]:
            step = Step("PATCH", f"{path}/s?fieldManager={manager}", body, APPLY)
            return await player.send(cluster.http, step, server)

        assert (await apply(V2, conversions.two("s", host="s", port=1), "one"))["code"] == 201
        refused = await apply(V1, conversions.one("s", address="t:2"), "two")
        assert [cause["field"] for cause in refused["body"]["details"]["causes"]] == [".spec.host", ".spec.port"]
        assert (await apply(V1, conversions.one("s", replicas=1), "two"))["code"] == 200

    play(server, main)


def test_a_webhook_may_be_a_service(server: Server) -> None:
    service = {"name": "hook", "namespace": "default", "path": "/convert"}

    async def main(cluster: Cluster) -> None:
        webhook = conversions.conversion()["webhook"]
        webhook["clientConfig"] = {"service": service, "caBundle": server.client("")["caBundle"]}
        step = Step("PATCH", conversions.NAME, {"spec": {"conversion": {"webhook": webhook}}}, MERGE)
        refused = await player.send(cluster.http, step, server)
        assert refused["code"] == 422, "the URL is still there"
        webhook["clientConfig"]["url"] = None
        assert (await player.send(cluster.http, step, server))["code"] == 200
        answer = await cluster.http.get(f"{V2}/a")
        assert answer.json()["message"].endswith('service "hook" not found')
        made = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443}]}}
        assert (await cluster.http.post("/api/v1/namespaces/default/services", json=made)).status_code == 201
        await asyncio.sleep(0.1)
        assert (await cluster.http.get(f"{V2}/a")).json()["spec"]["host"] == "a"

    play(server, main, services={"default/hook": server.port})


def test_a_past_that_was_forgotten_is_no_end(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        patch = {"content-type": MERGE}
        version = (await cluster.http.get(V2)).json()["metadata"]["resourceVersion"]
        watch = asyncio.create_task(events(cluster, V2, 2))
        await asyncio.sleep(0.3)
        for port in range(1, 21):
            content = json.dumps({"spec": {"port": port}})
            assert (await cluster.http.patch(f"{V2}/a", content=content, headers=patch)).status_code == 200
        told = await watch
        assert told[-1] == ("MODIFIED", "a", 20)
        late = await cluster.http.get(V2, params={"watch": "true", "resourceVersion": version, "timeoutSeconds": "1"})
        assert "too old resource version" in late.text
        assert (await cluster.http.get(V2)).json()["items"][0]["spec"]["port"] == 20

    play(server, main, window_events=4, window_bytes=2000)


def test_a_definition_goes_whose_webhook_fails_where_no_object_needs_it(server: Server) -> None:
    async def main(cluster: Cluster) -> None:
        await to(cluster, server, "refuse")
        assert (await cluster.http.delete(V1)).status_code == 200
        assert (await cluster.http.get(V1)).json()["items"] == []
        assert (await cluster.http.delete(conversions.NAME)).status_code == 200
        for _ in range(100):
            if (await cluster.http.get(conversions.NAME)).status_code == 404:
                return
            await asyncio.sleep(0.02)
        raise AssertionError("the definition stays")

    play(server, main)
