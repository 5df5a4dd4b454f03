"""The gateway over a small cluster: the way of each verb from HTTP to the API server and back."""

from __future__ import annotations

import json
from typing import Any

import httpx

from kemu.emulated.gateway.requests import envelopes
from kemu.emulated.gateway.servers import Server
from kemu.messages.k8s import core_v1_pb2
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster, pod

PODS = "/api/v1/namespaces/default/pods"
INITIAL = "watch=1&allowWatchBookmarks=True&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"


def test_objects_are_created_read_changed_and_deleted() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        created = await http.post(PODS, json=pod())
        assert created.status_code == 201
        assert created.headers["content-type"] == "application/json"
        assert created.content.endswith(b"\n")
        found = (await http.get(f"{PODS}/a")).json()
        assert (found["kind"], found["apiVersion"], found["spec"]["restartPolicy"]) == ("Pod", "v1", "Always")
        patch = {"metadata": {"labels": {"app": "x"}}}
        patched = await http.patch(
            f"{PODS}/a", content=json.dumps(patch), headers={"content-type": "application/merge-patch+json"}
        )
        assert patched.json()["metadata"]["labels"] == {"app": "x"}
        listed = (await http.get("/api/v1/pods", params={"labelSelector": "app in (x)"})).json()
        assert listed["kind"] == "PodList"
        assert [one["metadata"]["name"] for one in listed["items"]] == ["a"]
        assert "kind" not in listed["items"][0]
        changed = patched.json()
        changed["metadata"]["annotations"] = {"note": "1"}
        updated = await http.put(f"{PODS}/a", json=changed)
        assert updated.status_code == 200, updated.text
        assert updated.json()["metadata"]["annotations"] == {"note": "1"}
        stale = await http.put(f"{PODS}/a", json=changed)
        assert (stale.status_code, stale.json()["reason"]) == (409, "Conflict")
        deleted = await http.delete(f"{PODS}/a")
        assert (deleted.status_code, deleted.json()["kind"]) == (200, "Pod")
        missing = await http.get(f"{PODS}/a")
        assert missing.json() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'pods "a" not found',
            "reason": "NotFound",
            "details": {"name": "a", "kind": "pods"},
            "code": 404,
        }

    gateway_cluster.run(main)


def test_a_watch_tells_of_the_present_state_and_then_of_changes() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.http.post(PODS, json=pod())
        server = Server(cluster.gateway)
        await server.start()
        events: list[dict[str, Any]] = []
        async with (
            httpx.AsyncClient(base_url=server.url) as http,
            http.stream("GET", f"{PODS}?{INITIAL}&timeoutSeconds=1") as response,
        ):
            assert response.headers["transfer-encoding"] == "chunked"
            async for line in response.aiter_lines():
                events.append(json.loads(line))
                if len(events) == 2:
                    await cluster.http.delete(f"{PODS}/a")
        await server.stop()
        assert [one["type"] for one in events[:4]] == ["ADDED", "BOOKMARK", "MODIFIED", "DELETED"]
        assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert events[3]["object"]["metadata"]["name"] == "a"

    gateway_cluster.run(main)


def test_a_watch_that_is_refused_is_an_error_of_http() -> None:
    async def main(cluster: Cluster) -> None:
        answer = await cluster.http.get(f"{PODS}?watch=1&labelSelector=a%20b")
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
        answer = await cluster.http.get(f"{PODS}?watch=1&sendInitialEvents=true")
        assert (answer.status_code, answer.json()["details"]["kind"]) == (422, "ListOptions")

    gateway_cluster.run(main)


def test_urls_that_name_nothing() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        for path in ("/api/v1/nosuch", "/api/v2/pods", "/api/v1/pods/a", "/api/v1/namespaces/default/nodes"):
            answer = await http.get(path)
            assert (answer.status_code, answer.json()["details"]) == (404, {}), path
        assert (await http.get("/apis/foo.io/v1/bars")).text == "404 page not found\n"
        assert (await http.post("/api/v1/pods", json=pod())).status_code == 405

    gateway_cluster.run(main)


def test_an_update_with_what_was_read_changes_nothing() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        spec = {"hostNetwork": False, "containers": [{"name": "c", "image": "x", "resources": {}, "tty": False}]}
        created = await http.post(PODS, json=pod(**spec))
        assert "hostNetwork" not in created.json()["spec"]
        assert created.json()["spec"]["containers"][0]["resources"] == {}
        updated = await http.put(f"{PODS}/a", json=created.json())
        assert updated.status_code == 200, updated.text
        assert updated.json()["metadata"]["resourceVersion"] == created.json()["metadata"]["resourceVersion"]
        merge = {"content-type": "application/merge-patch+json"}
        patched = await http.patch(f"{PODS}/a", content=b'{"spec":{"hostNetwork":false}}', headers=merge)
        assert patched.json()["metadata"]["resourceVersion"] == created.json()["metadata"]["resourceVersion"]

    gateway_cluster.run(main)


def test_an_object_in_protobuf_as_go_writes_it() -> None:
    async def main(cluster: Cluster) -> None:
        found = core_v1_pb2.ConfigMap(data={"a": "b"})
        found.metadata.name, found.metadata.uid, found.metadata.generateName = "c", "", ""
        found.metadata.creationTimestamp.SetInParent()
        maps = "/api/v1/namespaces/default/configmaps"
        protobuf = "application/vnd.kubernetes.protobuf"
        headers = {"content-type": protobuf, "accept": protobuf}
        body = envelopes.pack("v1", "ConfigMap", found.SerializeToString())
        answer = await cluster.http.post(maps, content=body, headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (201, protobuf)
        version, kind, data = envelopes.unpack(answer.content)
        assert (version, kind, core_v1_pb2.ConfigMap.FromString(data).data["a"]) == ("v1", "ConfigMap", "b")
        updated = await cluster.http.put(f"{maps}/c", content=body, headers={"content-type": protobuf})
        assert updated.status_code == 200, updated.text
        assert "generateName" not in updated.json()["metadata"]
        wrong = envelopes.pack("v1", "Secret", found.SerializeToString())
        answer = await cluster.http.post(maps, content=wrong, headers={"content-type": protobuf})
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")

    gateway_cluster.run(main)


def test_a_pod_that_goes_at_once_is_marked_before() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        await http.post(PODS, json=pod())
        version = (await http.get(PODS)).json()["metadata"]["resourceVersion"]
        deleted = await http.delete(f"{PODS}/a?gracePeriodSeconds=0")
        assert deleted.json()["metadata"]["deletionGracePeriodSeconds"] == 0
        watched = await http.get(f"{PODS}?watch=1&resourceVersion={version}&timeoutSeconds=1")
        events = [json.loads(line) for line in watched.text.splitlines()]
        assert [one["type"] for one in events] == ["MODIFIED", "DELETED"]
        assert all("deletionTimestamp" in one["object"]["metadata"] for one in events)
        assert (await http.get(f"{PODS}/a")).status_code == 404
        gone = await http.delete("/api/v1/namespaces/default/configmaps/none")
        assert gone.status_code == 404

    gateway_cluster.run(main)


def test_a_version_that_is_still_to_come_is_one_to_ask_for_again() -> None:
    async def main(cluster: Cluster) -> None:
        answer = await cluster.http.get(f"{PODS}?resourceVersion=999999999")
        assert (answer.status_code, answer.headers["retry-after"]) == (504, "1")
        details = answer.json()["details"]
        assert details == {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }

    gateway_cluster.run(main)


def test_a_watch_ends_with_how_far_it_came() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        created = (await http.post(PODS, json=pod())).json()
        query = "watch=1&allowWatchBookmarks=true&resourceVersion=1&timeoutSeconds=1"
        events = [json.loads(line) for line in (await http.get(f"{PODS}?{query}")).text.splitlines()]
        assert [one["type"] for one in events] == ["ADDED", "BOOKMARK"]
        assert events[1]["object"]["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
        assert events[1]["object"]["kind"] == "Pod"
        wrong = await http.get(f"{PODS}?watch=1&timeoutSeconds=soon")
        assert (wrong.status_code, wrong.json()["reason"]) == (400, "BadRequest")

    gateway_cluster.run(main)


def test_a_query_that_nobody_reads_is_refused() -> None:
    async def main(cluster: Cluster) -> None:
        answer = await cluster.http.get(f"{PODS}?{'a=1&' * 2000}b=2")
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")

    gateway_cluster.run(main)
