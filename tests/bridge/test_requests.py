"""Which HTTP requests a real API server gets for the calls of kemu's clients."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.bridge import requests
from kemu.emulated.objects.wire import envelopes
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2


def _where(resource: str, namespace: str = "") -> api_pb2.Resource:
    return api_pb2.Resource(resource=resource, namespace=namespace)


def test_objects_are_written_as_protobuf() -> None:
    pod = core_v1_pb2.Pod(metadata={"name": "web", "namespace": "shop"}).SerializeToString()
    made = requests.of("create", api_pb2.CreateRequest(resource=_where("pods", "shop"), object=pod))
    assert (made.method, made.path, made.content_type) == ("POST", "/api/v1/namespaces/shop/pods", envelopes.MEDIA_TYPE)
    assert envelopes.unwrap(made.body) == ("v1", "Pod", pod)
    updated = requests.of("update_status", api_pb2.UpdateStatusRequest(resource=_where("pods", "shop"), object=pod))
    assert (updated.method, updated.path) == ("PUT", "/api/v1/namespaces/shop/pods/web/status")


def test_lists_say_what_they_want() -> None:
    asked = api_pb2.ListRequest(
        resource=_where("leases", "kube-system"), field_selector="a=b,c!=d", limit=5, resource_version="0"
    )
    made = requests.of("list", asked)
    assert made.path == "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    assert made.query == (("fieldSelector", "a=b,c!=d"), ("limit", "5"), ("resourceVersion", "0"))


def test_a_watch_goes_on_after_the_revision_it_has_seen() -> None:
    create = api_pb2.WatchCreate(watch_id=1, resource=_where("nodes"), resource_version="3", allow_bookmarks=True)
    assert requests.watch(create, "17", 300).query == (
        ("watch", "true"), ("resourceVersion", "17"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", "300"),
    )  # fmt: skip


def test_the_precondition_on_the_uid_of_a_patch_stands_in_the_patch() -> None:
    patch = api_pb2.PatchRequest(
        resource=_where("pods", "default"), name="a", subresource="status", type=api_pb2.PatchRequest.STRATEGIC,
        patch=b'{"status":{"nominatedNodeName":"n"}}', preconditions={"uid": "u"},
    )  # fmt: skip
    made = requests.of("patch", patch)
    assert made.path == "/api/v1/namespaces/default/pods/a/status"
    assert made.content_type == "application/strategic-merge-patch+json"
    assert json.loads(made.body) == {"status": {"nominatedNodeName": "n"}, "metadata": {"uid": "u"}}


def test_bindings_deletions_and_evictions_are_subresources_and_options() -> None:
    bound = requests.of("bind", api_pb2.BindRequest(namespace="d", name="a", uid="u", node="n", annotations={"k": "v"}))
    assert (bound.method, bound.path) == ("POST", "/api/v1/namespaces/d/pods/a/binding")
    assert json.loads(bound.body)["target"] == {"kind": "Node", "name": "n"}
    assert json.loads(bound.body)["metadata"]["annotations"] == {"k": "v"}
    deleted = requests.of(
        "delete",
        api_pb2.DeleteRequest(
            resource=_where("pods", "d"), name="a", grace_period_seconds=0, preconditions={"uid": "u"}
        ),
    )
    assert json.loads(deleted.body) == {
        "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "preconditions": {"uid": "u"},
    }  # fmt: skip
    assert requests.of("evict", api_pb2.EvictRequest(namespace="d", name="a")).path.endswith("/pods/a/eviction")


@pytest.mark.parametrize(
    ("verb", "request_", "wrong"),
    [
        ("commit", api_pb2.CommitRequest(), errors.MethodNotAllowed),
        ("bind", api_pb2.BindRequest(name="a", node_generation=3), errors.BadRequest),
        ("get", api_pb2.GetRequest(resource=_where("gizmos"), name="a"), errors.NotFound),
    ],
)
def test_what_only_kemu_knows_is_refused(verb: str, request_: Any, wrong: type[errors.ApiError]) -> None:
    with pytest.raises(wrong):
        requests.of(verb, request_)


def test_a_patch_in_messages_becomes_a_strategic_one() -> None:
    """Elements with merge keys replace those of their keys; what is removed is null or deleted by its key."""
    node = core_v1_pb2.Node()
    condition = node.status.conditions.add(type="Ready", status="True")
    condition.lastHeartbeatTime.seconds = 86400
    node.status.capacity["cpu"].string = "4"
    gone = core_v1_pb2.Node()
    gone.status.conditions.add(type="DiskPressure")
    gone.status.conditions.add(type="Ready")
    gone.metadata.annotations["old"] = ""
    gone.status.nodeInfo.kernelVersion = "x"
    patch = api_pb2.PatchRequest(
        resource=_where("nodes"), name="n", subresource="status", type=api_pb2.PatchRequest.MESSAGE,
        patch=node.SerializeToString(), removed=gone.SerializeToString(),
    )  # fmt: skip
    made = json.loads(requests.of("patch", patch).body)
    assert made["metadata"] == {"annotations": {"old": None}}
    assert made["status"]["capacity"] == {"cpu": "4"}
    assert made["status"]["nodeInfo"] == {"kernelVersion": None}
    ready, pressure = made["status"]["conditions"]
    assert (ready["type"], ready["status"], ready["lastHeartbeatTime"]) == ("Ready", "True", "1970-01-02T00:00:00Z")
    assert ready["message"] is None
    assert ready["reason"] is None
    assert pressure == {"type": "DiskPressure", "$patch": "delete"}
