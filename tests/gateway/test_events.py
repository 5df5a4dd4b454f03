"""Events in both of their APIs: the same objects under two names."""

from __future__ import annotations

import json
from typing import Any

from kemu.emulated.gateway.requests import envelopes
from kemu.messages.k8s import core_v1_pb2, events_v1_pb2
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster

NEW, OLD = "/apis/events.k8s.io/v1/namespaces/default/events", "/api/v1/namespaces/default/events"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def event(name: str = "e", **fields: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "x.io/y",
        "reportingInstance": "y-1",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "name": "a", "namespace": "default"},
        "note": "assigned",
        "type": "Normal",
        **fields,
    }


def test_an_event_of_the_new_api_is_one_of_the_old_and_the_other_way_round() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        created = await http.post(NEW, json=event())
        assert created.status_code == 201, created.text
        assert (created.json()["apiVersion"], created.json()["note"]) == ("events.k8s.io/v1", "assigned")
        # As Go writes the type: also what is not set.
        assert created.json()["deprecatedSource"] == {}
        old = (await http.get(f"{OLD}/e")).json()
        assert old["apiVersion"] == "v1"
        assert (old["involvedObject"]["name"], old["message"]) == ("a", "assigned")
        assert old["reportingComponent"] == "x.io/y"
        old = {"metadata": {"name": "o"}, "involvedObject": {"kind": "Node", "name": "n"}, "message": "m", "count": 3}
        await http.post(OLD, json=old)
        listed = (await http.get(NEW, params={"fieldSelector": "regarding.kind=Node"})).json()
        assert listed["kind"] == "EventList"
        assert [(one["note"], one["deprecatedCount"]) for one in listed["items"]] == [("m", 3)]

    gateway_cluster.run(main)


def test_a_recorder_counts_repetitions_by_a_patch() -> None:
    async def main(cluster: Cluster) -> None:
        http = cluster.http
        await http.post(NEW, json=event())
        patch = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}, "note": "again"}
        headers = {"content-type": "application/strategic-merge-patch+json"}
        answer = await http.patch(f"{NEW}/e", content=json.dumps(patch), headers=headers)
        assert (answer.json()["series"]["count"], answer.json()["note"]) == (2, "again")
        operations = [{"op": "replace", "path": "/note", "value": "third"}]
        headers = {"content-type": "application/json-patch+json"}
        await http.patch(f"{NEW}/e", content=json.dumps(operations), headers=headers)
        assert (await http.get(f"{OLD}/e")).json()["message"] == "third"

    gateway_cluster.run(main)


def test_an_event_in_protobuf() -> None:
    async def main(cluster: Cluster) -> None:
        found = events_v1_pb2.Event(
            reportingController="x.io/y", reportingInstance="1", action="a", reason="r", note="n", type="Normal"
        )
        found.metadata.name = "e"
        found.eventTime.seconds = 1
        found.regarding.kind, found.regarding.namespace = "Pod", "default"
        headers = {"content-type": PROTOBUF, "accept": PROTOBUF}
        body = envelopes.pack("events.k8s.io/v1", "Event", found.SerializeToString())
        answer = await cluster.http.post(NEW, content=body, headers=headers)
        version, _, data = envelopes.unpack(answer.content)
        assert (version, events_v1_pb2.Event.FromString(data).note) == ("events.k8s.io/v1", "n")
        answer = await cluster.http.get(OLD, headers={"accept": PROTOBUF})
        version, kind, data = envelopes.unpack(answer.content)
        assert (version, kind) == ("v1", "EventList")
        (item,) = (value for number, value in envelopes.fields(data, 0) if number == 2)
        assert core_v1_pb2.Event.FromString(item).message == "n"

    gateway_cluster.run(main)


def test_the_table_of_events_is_that_of_the_core_group() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.http.post(NEW, json=event())
        table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        found = (await cluster.http.get(NEW, headers=table)).json()
        assert found["columnDefinitions"][0]["name"] == "Last Seen"
        assert "assigned" in found["rows"][0]["cells"]

    gateway_cluster.run(main)


def test_what_is_not_there_is_named_by_the_api_that_was_asked() -> None:
    async def main(cluster: Cluster) -> None:
        answer = await cluster.http.get(f"{NEW}/nope")
        assert answer.json()["message"] == 'events.events.k8s.io "nope" not found'
        assert answer.json()["details"] == {"name": "nope", "group": "events.k8s.io", "kind": "events"}
        assert (await cluster.http.get(f"{OLD}/nope")).json()["message"] == 'events "nope" not found'

    gateway_cluster.run(main)
