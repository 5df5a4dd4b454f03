"""Claims of PodGroups: the cases of ``TestSyncHandler`` of ``pkg/controller/resourceclaim`` and of taint eviction
that have to do with them."""

from __future__ import annotations

from typing import Any

import pytest

from kemu import errors
from kemu.emulated.objects.conversion import convert
from kemu.lab.conformance.control_planes import ControlPlane, Deletions
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.resource_v1_pb2 import ResourceClaim
from kemu.messages.k8s.scheduling_v1alpha2_pb2 import PodGroup

ON = {"settings": {"feature_gates": {"dra_workload_resource_claims": True}}}
ENTRY = {"name": "e", "resourceClaimTemplateName": "t"}
SPEC = {
    "devices": {
        "requests": [{"name": "r", "exactly": {"deviceClassName": "d", "allocationMode": "ExactCount", "count": 1}}]
    }
}


def template() -> Any:
    metadata = {"name": "t", "namespace": "default"}
    labelled = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": SPEC}
    return convert.from_manifest(
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": labelled}
    )


def group(made: str = "") -> PodGroup:
    metadata = {"name": "g", "namespace": "default", "uid": "ug"}
    status = {"resourceClaimStatuses": [{"name": "e", "resourceClaimName": made}]} if made else {}
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": [ENTRY]}
    data = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}
    found = convert.from_manifest(data | {"status": status})
    assert isinstance(found, PodGroup)
    return found


def pod(node: str = "", made: str = "") -> core_v1_pb2.Pod:
    spec = {"schedulingGroup": {"podGroupName": "g"}, "resourceClaims": [ENTRY], "containers": [{"name": "c"}]}
    status = {"resourceClaimStatuses": [{"name": "e", "resourceClaimName": made}]} if made else {}
    found = convert.from_manifest(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default", "uid": "up"},
            "spec": spec | ({"nodeName": node} if node else {}),
            "status": status,
        }
    )
    assert isinstance(found, core_v1_pb2.Pod)
    return found


def claim(*, reserved: bool = False, allocated: bool = False) -> ResourceClaim:
    """One that was made for the group."""
    owner = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": "g", "uid": "ug"}
    metadata: dict[str, Any] = {
        "name": "g-e-1",
        "namespace": "default",
        "uid": "uc",
        "ownerReferences": [owner | {"controller": True}],
    }
    metadata |= {"annotations": {"resource.kubernetes.io/pod-claim-name": "e"}}
    result = {"driver": "d", "pool": "n", "device": "x", "request": "r"}
    users = [{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "ug"}] if reserved else []
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": users} if allocated or reserved else {}
    if allocated or reserved:
        metadata |= {"finalizers": ["resource.kubernetes.io/delete-protection"]}
    found = convert.from_manifest(
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": SPEC}
        | {"status": status}
    )
    assert isinstance(found, ResourceClaim)
    return found


class Played:
    """The controller of claims has seen ``objects``; ``then`` is deleted."""

    def __init__(self, *objects: Any, config: dict[str, Any] | None = None, then: Any = None) -> None:
        plane = ControlPlane()

        async def play() -> None:
            await plane.put(*objects)
            factory = "kemu.emulated.controllers.devices.resource_claims:ResourceClaimController"
            await plane.launch("controller/resourceclaim", factory, config or ON)
            await plane.runtime.begin()
            await plane.clock.sleep(2)
            if then is not None:
                await plane.remove(then)
                await plane.clock.sleep(2)
            self.claims: list[Any] = (await plane.client.list("resourceclaims")).items
            try:
                self.group: Any = await plane.get(group())
            except errors.NotFound:
                self.group = None
            self.pods = (await plane.client.list("pods")).items

        plane.run(play)


def made_of(user: Any) -> list[tuple[str, str]]:
    return [(one.name, one.resourceClaimName) for one in user.status.resourceClaimStatuses]


def test_a_claim_is_made_for_a_group() -> None:
    played = Played(group(), template())
    (made,) = played.claims
    assert made.metadata.name.startswith("g-e-")
    assert made.metadata.generateName == "g-e-"
    assert dict(made.metadata.annotations) == {"c": "d", "resource.kubernetes.io/pod-claim-name": "e"}
    assert dict(made.metadata.labels) == {"a": "b"}
    (owner,) = made.metadata.ownerReferences
    assert (owner.apiVersion, owner.kind, owner.name, owner.uid, owner.controller, owner.blockOwnerDeletion) == (
        "scheduling.k8s.io/v1alpha2", "PodGroup", "g", "ug", True, False,
    )  # fmt: skip
    assert made_of(played.group) == [("e", made.metadata.name)]


def test_none_is_made_for_a_pod_whose_group_has_the_entry() -> None:
    assert Played(pod(), group()).claims == []  # nor for the group, without the template
    played = Played(pod(), group(), template())
    assert [one.metadata.ownerReferences[0].kind for one in played.claims] == ["PodGroup"]
    assert made_of(played.pods[0]) == [("e", played.claims[0].metadata.name)]


def test_a_pod_is_told_of_the_claim_of_its_group() -> None:
    played = Played(pod(), group("g-e-1"), claim(), template())
    assert [one.metadata.name for one in played.claims] == ["g-e-1"]
    assert made_of(played.pods[0]) == [("e", "g-e-1")]


def test_a_pod_gets_its_own_without_the_gate() -> None:
    played = Played(pod(), group(), claim(), template(), config={"settings": {}})
    assert sorted(one.metadata.ownerReferences[0].kind for one in played.claims) == ["Pod", "PodGroup"]
    assert made_of(played.pods[0])[0][1].startswith("p-e-")
    assert made_of(played.group) == []


def test_a_claim_of_a_group_is_made_again() -> None:
    played = Played(group("g-e-gone"), template())
    assert made_of(played.group) == [("e", played.claims[0].metadata.name)]
    assert made_of(played.group) != [("e", "g-e-gone")]


def test_a_pod_waits_for_its_group() -> None:
    played = Played(pod(), template())
    assert played.claims == []
    assert made_of(played.pods[0]) == []


def test_a_bound_pod_lets_the_claim_be_reserved_for_its_group() -> None:
    played = Played(pod("n", "g-e-1"), group("g-e-1"), claim(allocated=True), template())
    assert [(one.resource, one.uid) for one in played.claims[0].status.reservedFor] == [("podgroups", "ug")]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_group_that_is_gone_releases_its_claim(is_known: bool) -> None:
    objects = [claim(reserved=True), template(), *([group("g-e-1")] if is_known else [])]
    (kept,) = Played(*objects).claims if is_known else (claim(reserved=True),)
    assert kept.status.HasField("allocation")
    (freed,) = Played(*objects, then=group() if is_known else None).claims
    assert not freed.status.HasField("allocation")
    assert not freed.status.reservedFor
    assert not freed.metadata.finalizers


def test_a_pod_that_ends_does_not_release_the_claim_of_its_group() -> None:
    played = Played(pod("n", "g-e-1"), group("g-e-1"), claim(reserved=True), template(), then=pod())
    assert [(one.resource, one.uid) for one in played.claims[0].status.reservedFor] == [("podgroups", "ug")]


@pytest.mark.parametrize(("config", "evicted"), [(ON, ["p"]), ({}, [])])
def test_members_are_evicted_from_the_tainted_device_of_their_group(config: dict[str, Any], evicted: list[str]) -> None:
    """``TestEviction``: a claim that is reserved for a PodGroup."""
    plane = ControlPlane()
    found = Deletions(plane)
    taint = {"key": "k", "effect": "NoExecute", "timeAdded": "2000-01-01T00:00:00Z"}
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    tainted = convert.from_manifest(
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}}
        | {"spec": {"driver": "d", "nodeName": "n", "pool": pool, "devices": [{"name": "x", "taints": [taint]}]}}
    )

    async def play() -> None:
        await plane.put(pod("n", "g-e-1"), group("g-e-1"), claim(reserved=True))
        await plane.watch("pods", found)
        factory = "kemu.emulated.controllers.devices.taint_evictions:DeviceTaintEvictionController"
        await plane.launch("controller/device-taint-eviction", factory, config)
        await plane.runtime.begin()
        await plane.clock.sleep(1)
        await plane.put(tainted)
        await plane.clock.sleep(60)

    plane.run(play)
    assert [name for _, name in found.found] == evicted
