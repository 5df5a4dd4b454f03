"""Patches in messages: what they set, what they remove, and that they agree with strategic patches."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kemu import errors
from kemu.emulated.apiserver.registry.patching import patches, strategic_merges
from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2
from tests.apiserver.apiserver_cluster import Cluster, node, pod, refusal, run


def conditions(**status: str) -> list[core_v1_pb2.PodCondition]:
    return [core_v1_pb2.PodCondition(type=name, status=value) for name, value in status.items()]


def merged(target: Any, patch: Any, removed: Any = None) -> Any:
    found = meta.copied(target)
    if removed is not None:
        patches.remove(found, removed)
    patches.merge_message(found, patch)
    return found


def test_elements_with_a_merge_key_replace_those_of_their_key_and_come_last() -> None:
    there = core_v1_pb2.Pod()
    there.status.conditions.extend(conditions(A="True", B="True", C="True"))
    there.status.conditions[0].reason = "Why"
    patch = core_v1_pb2.Pod()
    patch.status.conditions.extend(conditions(A="False", D="True"))
    found = merged(there, patch)
    assert [(one.type, one.status, one.reason) for one in found.status.conditions] == [
        ("B", "True", ""), ("C", "True", ""), ("A", "False", ""), ("D", "True", ""),
    ]  # fmt: skip


def test_other_lists_are_replaced_and_what_is_not_set_stays() -> None:
    there = core_v1_pb2.Pod()
    there.status.phase, there.status.reason = "Running", "Why"
    for name in ("a", "b"):
        there.status.containerStatuses.add(name=name, ready=True)
        there.status.initContainerStatuses.add(name=name)
    for address in ("10.0.0.1", "fd00::1"):
        there.status.podIPs.add(ip=address)
    patch = core_v1_pb2.Pod()
    patch.status.phase = "Failed"
    patch.status.containerStatuses.add(name="b", ready=False)
    patch.status.podIPs.add(ip="10.0.0.1")
    status = merged(there, patch).status
    assert (status.phase, status.reason) == ("Failed", "Why")
    assert [(one.name, one.ready) for one in status.containerStatuses] == [("b", False)]
    assert [one.name for one in status.initContainerStatuses] == ["a", "b"]
    assert [one.ip for one in status.podIPs] == ["fd00::1", "10.0.0.1"]


def test_maps_and_messages_merge_and_sets_stay_sets() -> None:
    there, patch = node("n1", cpu="4"), core_v1_pb2.Node()
    there.metadata.annotations["a"] = "1"
    there.metadata.finalizers.extend(["x", "y"])
    there.status.nodeInfo.bootID = "first"
    there.status.nodeInfo.kernelVersion = "6"
    patch.metadata.annotations["b"] = "2"
    patch.metadata.finalizers.append("x")
    patch.status.nodeInfo.bootID = "second"
    patch.status.capacity["example.com/gpu"].string = "1"
    found = merged(there, patch)
    assert dict(found.metadata.annotations) == {"a": "1", "b": "2"}
    assert list(found.metadata.finalizers) == ["y", "x"]
    assert (found.status.nodeInfo.bootID, found.status.nodeInfo.kernelVersion) == ("second", "6")
    assert "example.com/gpu" in found.status.capacity
    assert found.status.allocatable == there.status.allocatable


def test_what_is_removed() -> None:
    there, removed = core_v1_pb2.Pod(), core_v1_pb2.Pod()
    there.metadata.annotations["a"], there.metadata.annotations["b"] = "1", "2"
    there.status.phase, there.status.reason = "Failed", "Why"
    there.status.conditions.extend(conditions(A="True", B="True"))
    there.status.containerStatuses.add(name="a")
    removed.metadata.annotations["a"] = ""
    removed.metadata.annotations["not there"] = ""
    removed.status.reason = "whatever"
    removed.status.conditions.extend(conditions(B=""))
    removed.status.containerStatuses.add()
    removed.spec.affinity.nodeAffinity.SetInParent()
    found = merged(there, core_v1_pb2.Pod(), removed)
    wanted = core_v1_pb2.Pod()
    wanted.metadata.annotations["b"] = "2"
    wanted.status.phase = "Failed"
    wanted.status.conditions.extend(conditions(A="True"))
    assert found == wanted


TYPES = st.lists(st.sampled_from("ABCDE"), unique=True)


@st.composite
def statuses(draw: Any) -> core_v1_pb2.PodStatus:
    """Whose conditions always set the same fields."""
    status = core_v1_pb2.PodStatus()
    if draw(st.booleans()):
        status.phase = draw(st.sampled_from(["Pending", "Running", "Failed"]))
    status.conditions.extend(
        core_v1_pb2.PodCondition(type=one, status=draw(st.sampled_from(["True", "False"]))) for one in draw(TYPES)
    )
    for name in draw(TYPES):
        status.containerStatuses.add(name=name, restartCount=draw(st.integers(1, 3)))
    status.podIPs.extend(core_v1_pb2.PodIP(ip=one) for one in draw(TYPES))
    return status


@given(statuses(), statuses())
def test_a_patch_in_messages_is_a_strategic_patch(there: core_v1_pb2.PodStatus, patch: core_v1_pb2.PodStatus) -> None:
    data = strategic_merges.merge(convert.to_json(there), convert.to_json(patch), "core.v1.PodStatus")
    expected = convert.from_json(core_v1_pb2.PodStatus, data)
    found = merged(there, patch)
    for status in (expected, found):
        for field, key in (("conditions", "type"), ("podIPs", "ip")):
            elements = sorted(getattr(status, field), key=lambda one: getattr(one, key))
            status.ClearField(field)
            getattr(status, field).extend(elements)
    assert found == expected


def test_a_patch_in_messages_on_the_server() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        client, uid = cluster.client, created.metadata.uid
        patch = core_v1_pb2.Pod()
        patch.status.conditions.extend(conditions(A="True"))
        patch.spec.nodeName = "ignored in a patch of the status"
        data = patch.SerializeToString(deterministic=True)
        found = await client.patch_message(core_v1_pb2.Pod, "a", "default", data, "status", uid)
        assert [one.type for one in found.status.conditions] == ["A"]
        assert found.spec == created.spec
        gone = await client.patch_message(core_v1_pb2.Pod, "a", "default", b"", "status", removed=data)
        assert not gone.status.conditions
        await refusal(
            errors.Conflict, client.patch_message(core_v1_pb2.Pod, "a", "default", data, "status", "x"), cluster
        )
        await refusal(errors.NotFound, client.patch_message(core_v1_pb2.Pod, "b", "default", data, "status"), cluster)
        await refusal(
            errors.BadRequest, client.patch_message(core_v1_pb2.Pod, "a", "default", b"\x0a\xff", "status"), cluster
        )
        versioned = core_v1_pb2.Pod()
        versioned.metadata.resourceVersion = created.metadata.resourceVersion
        old = versioned.SerializeToString(deterministic=True)
        await refusal(errors.Conflict, client.patch_message(core_v1_pb2.Pod, "a", "default", old), cluster)
        assert api_pb2.PatchRequest.MESSAGE == patches.MESSAGE

    run(main)
