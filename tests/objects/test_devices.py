"""Claims for devices: stored and checked as Kubernetes does, though nobody in kemu allocates any."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.objects import meta
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.devices import claims
from kemu.emulated.objects.fields import refusals
from kemu.emulated.objects.validation import kinds
from kemu.messages.k8s import core_v1_pb2


def claim(*requests: dict[str, Any], kind: str = "ResourceClaim") -> Any:
    spec = {"devices": {"requests": list(requests)}}
    return convert.from_manifest(
        {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": "c", "namespace": "default"}}
        | {"spec": spec if kind == "ResourceClaim" else {"spec": spec}}
    )


def resource_slice(**spec: Any) -> Any:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return convert.from_manifest(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {"driver": "gpu.example.com", "pool": pool, **spec},
        }
    )


def test_a_request_gets_one_device_unless_it_says_otherwise() -> None:
    for kind in ("ResourceClaim", "ResourceClaimTemplate"):
        obj = claim({"name": "gpu", "exactly": {"deviceClassName": "gpu"}}, kind=kind)
        defaults.apply(obj)
        spec = obj.spec if kind == "ResourceClaim" else obj.spec.spec
        assert (spec.devices.requests[0].exactly.allocationMode, spec.devices.requests[0].exactly.count) == (
            "ExactCount",
            1,
        )
        assert kinds.validate_create(obj) == []


@pytest.mark.parametrize(
    ("request_", "field", "message"),
    [
        ({"name": "gpu"}, "spec.devices.requests[0]", "exactly one of `exactly` or `firstAvailable` is required"),
        ({"name": "", "exactly": {"deviceClassName": "gpu"}}, "spec.devices.requests[0].name", "RFC 1123 label"),
        ({"name": "gpu", "exactly": {}}, "spec.devices.requests[0].exactly.deviceClassName", "Required value"),
        (
            {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "All", "count": 2}},
            "spec.devices.requests[0].exactly.count",
            "must not be specified when allocationMode is 'All'",
        ),
    ],
)
def test_a_wrong_request_is_refused(request_: dict[str, Any], field: str, message: str) -> None:
    obj = claim(request_)
    defaults.apply(obj)
    (cause,) = kinds.validate_create(obj)
    assert cause.field == field
    assert message in cause.message


def test_the_spec_of_a_claim_never_changes() -> None:
    old = claim({"name": "gpu", "exactly": {"deviceClassName": "gpu"}})
    new = claim({"name": "gpu", "exactly": {"deviceClassName": "other"}})
    assert [cause.field for cause in kinds.validate_update(new, old)] == ["spec"]


def test_a_slice_says_where_its_devices_are() -> None:
    assert kinds.validate_create(resource_slice(nodeName="a")) == []
    for wrong in (resource_slice(), resource_slice(nodeName="a", allNodes=True)):
        assert [cause.field for cause in kinds.validate_create(wrong)] == ["spec"]
    moved = kinds.validate_update(resource_slice(nodeName="b"), resource_slice(nodeName="a"))
    assert [cause.field for cause in moved] == ["spec.nodeName"]


AMOUNT = "spec.devices[0].capacity[memory].requestPolicy"


@pytest.mark.parametrize(
    ("policy", "wrong"),
    [
        ({"default": "2", "validValues": ["1", "2", "10"]}, []),
        ({"default": "5", "validRange": {"min": "1", "max": "9", "step": "2"}}, []),
        (
            {"default": "3", "validValues": ["2", "1", "12"]},
            [
                f'{AMOUNT}.validValues[1]: Invalid value: "1": values must be sorted in ascending order',
                f'{AMOUNT}.validValues[2]: Invalid value: "12": option is larger than capacity value: 10',
                f'{AMOUNT}.validValues: Invalid value: "3": default value is not valid according to the requestPolicy',
            ],
        ),
        ({"validRange": {"min": "1"}}, [f"{AMOUNT}.default: Required value: required when validRange is defined"]),
        (
            {"default": "4", "validRange": {"min": "5", "max": "12", "step": "6"}},
            [
                f'{AMOUNT}.validRange.min: Invalid value: "4": default is less than min: 5',
                f'{AMOUNT}.validRange.max: Invalid value: "12": max is larger than capacity value: 10',
                f'{AMOUNT}.validRange.step: Invalid value: "6": one step 11 is larger than capacity value: 10',
                f'{AMOUNT}.validRange.step: Invalid value: "4": value is not a multiple of a given step (6) from (5)',
                f'{AMOUNT}.validRange.step: Invalid value: "12": value is not a multiple of a given step (6) from (5)',
            ],
        ),
        ({"default": "1", "validRange": {"min": "1", "step": "0"}}, []),
    ],
)
def test_how_much_of_a_shared_device_may_be_asked_for(policy: dict[str, Any], wrong: list[str]) -> None:
    capacity = {"memory": {"value": "10", "requestPolicy": policy}}
    device = {"name": "a", "allowMultipleAllocations": True, "capacity": capacity}
    causes = kinds.validate_create(resource_slice(nodeName="n", devices=[device]))
    assert [f"{cause.field}: {cause.message}" for cause in causes] == wrong


def test_a_capacity_without_a_value_is_zero() -> None:
    capacity = {"memory": {"requestPolicy": {"default": "0", "validValues": ["0", "1"]}}}
    device = {"name": "a", "allowMultipleAllocations": True, "capacity": capacity}
    (cause,) = kinds.validate_create(resource_slice(nodeName="n", devices=[device]))
    assert cause.message == 'Invalid value: "1": option is larger than capacity value: 0'


def test_long_keys_are_cut_where_they_are_shown() -> None:
    device = {"name": "a", "attributes": {f"{'d' * 63}/{'i' * 33}": {}}}
    (too_long, lacking) = kinds.validate_create(resource_slice(nodeName="n", devices=[device]))
    assert (too_long.field, too_long.message) == (
        "spec.devices[0].attributes", "Too long: may not be more than 32 bytes",
    )  # fmt: skip
    assert lacking.field == f"spec.devices[0].attributes[{'d' * 47}...{'d' * 12}/{'i' * 33}]"


def test_attributes_of_devices_and_lists_of_quantities_convert_both_ways() -> None:
    policy = {"default": "1Gi", "validValues": ["1Gi", "2Gi"]}
    device = {
        "name": "gpu-0",
        "attributes": {"model": {"string": "A100"}, "cores": {"int": 108}},
        "capacity": {"memory": {"value": "80Gi", "requestPolicy": policy}},
    }
    obj = resource_slice(nodeName="a", devices=[device])
    assert convert.to_json(obj)["spec"]["devices"] == [device]


# Claims of PodGroups --------------------------------------------------------------------------------------------------


def member(group: str = "my-podgroup", uid: str = "pod-uid") -> core_v1_pb2.Pod:
    pod = core_v1_pb2.Pod()
    pod.metadata.namespace, pod.metadata.name, pod.metadata.uid = "default", "my-pod", uid
    if group:
        pod.spec.schedulingGroup.podGroupName = group
    return pod


def pod_group(*entries: dict[str, str], **status: str) -> Any:
    manifest: dict[str, Any] = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "my-podgroup", "namespace": "default", "uid": "podgroup-uid"},
        "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": list(entries)},
        "status": {
            "resourceClaimStatuses": [{"name": name, "resourceClaimName": made} for name, made in status.items()]
        },
    }
    return convert.from_manifest(manifest)


def named(name: str, claim_name: str = "c") -> dict[str, str]:
    return {"name": name, "resourceClaimName": claim_name}


def templated(name: str, template: str = "c") -> dict[str, str]:
    return {"name": name, "resourceClaimTemplateName": template}


POD = ("", "pods", "my-pod", "pod-uid")
GROUP = ("scheduling.k8s.io", "podgroups", "my-podgroup", "podgroup-uid")


@pytest.mark.parametrize(
    ("entry", "of_group", "wanted"),
    [
        (named("a"), None, POD),
        (templated("a"), None, POD),
        (named("a"), [named("a")], GROUP),
        (templated("a"), [templated("a")], GROUP),
        (named("a"), [named("x"), named("y")], POD),
        (named("a"), [named("x"), named("y"), named("a")], GROUP),
        (named("a"), [named("a", "another")], POD),
        (templated("a"), [templated("a", "another")], POD),
        (named("a"), [templated("a")], POD),
        (templated("a"), [named("a")], POD),
    ],
)
def test_a_claim_is_reserved_for_the_group_that_has_the_same_entry(
    entry: dict[str, str], of_group: list[dict[str, str]] | None, wanted: tuple[str, ...]
) -> None:
    """``TestBindTo``."""
    group = None if of_group is None else pod_group(*of_group)
    found = claims.consumer_of(member(), group, core_v1_pb2.PodResourceClaim(**entry))
    assert (found.apiGroup, found.resource, found.name, found.uid) == wanted


@pytest.mark.parametrize(
    ("group", "consumer", "of_groups", "wanted"),
    [
        ("my-podgroup", {"resource": "pods", "uid": "pod-uid"}, False, True),
        ("my-podgroup", {"resource": "pods", "uid": "another"}, True, False),
        ("my-podgroup", dict(zip(("apiGroup", "resource", "name", "uid"), GROUP, strict=True)), True, True),
        ("my-podgroup", dict(zip(("apiGroup", "resource", "name", "uid"), GROUP, strict=True)), False, False),
        ("another", dict(zip(("apiGroup", "resource", "name", "uid"), GROUP, strict=True)), True, False),
        ("", dict(zip(("apiGroup", "resource", "name", "uid"), GROUP, strict=True)), True, False),
        ("my-podgroup", {"resource": "podgroups", "name": "my-podgroup", "uid": "u"}, True, False),
        ("my-podgroup", {"apiGroup": "scheduling.k8s.io", "resource": "x", "name": "my-podgroup"}, True, False),
    ],
)
def test_a_pod_may_use_what_is_reserved_for_its_group(
    group: str, consumer: dict[str, str], of_groups: bool, wanted: bool
) -> None:
    """``TestIsReservedForPod``."""
    made = claim()
    made.status.reservedFor.add(**consumer)
    assert claims.is_reserved_for(member(group), made, of_groups=of_groups) is wanted


def test_a_generated_claim_may_be_that_of_the_group() -> None:
    """``TestResourceClaimIsFor``."""
    made, pod = claim(), member()
    made.metadata.ownerReferences.append(
        meta.owner_reference(pod_group(), "scheduling.k8s.io/v1beta9", "PodGroup")  # whatever the version
    )
    said = "ResourceClaim default/c was not created for Pod default/my-pod"
    assert claims.not_for_pod(pod, made) == f"{said} (Pod is not owner)"
    assert claims.not_for_pod(pod, made, of_groups=True) == ""
    wrong = f"{said} (neither Pod nor PodGroup another is the owner)"
    assert claims.not_for_pod(member("another"), made, of_groups=True) == wrong
    assert claims.not_for_group(pod_group(), made) == ""
    made.metadata.ownerReferences[0].uid = "old"
    assert claims.not_for_pod(pod, made, of_groups=True) == ""
    assert claims.not_for_group(pod_group(), made).endswith("(PodGroup is not owner)")
    made.metadata.ownerReferences[0].apiVersion = "example.com/v1"
    assert claims.not_for_pod(pod, made, of_groups=True)


def test_the_name_of_a_claim_of_a_group() -> None:
    """``TestNameFromPodGroup``."""
    group = pod_group(named("a", "x"), templated("b"), templated("c"), b="made")
    entries = group.spec.resourceClaims
    assert claims.name_of(group, entries[0]) == ("x", False)
    assert claims.name_of(group, entries[1]) == ("made", True)
    with pytest.raises(claims.NotMade, match="PodGroup default/my-podgroup: ResourceClaim not created yet"):
        claims.name_of(group, entries[2])
    group.status.resourceClaimStatuses.add(name="c")
    assert claims.name_of(group, entries[2]) == (None, True)


@pytest.mark.parametrize(
    ("entries", "wrong"),
    [
        ([named("a"), templated("b")], []),
        ([{"name": "a"}], ["spec.resourceClaims[0]"]),
        ([named("a") | templated("a")], ["spec.resourceClaims[0]"]),
        ([named("a", ".foo_bar")], ["spec.resourceClaims[0].resourceClaimName"]),
        ([templated("a", ".foo_bar")], ["spec.resourceClaims[0].resourceClaimTemplateName"]),
        ([named("../a")], ["spec.resourceClaims[0].name"]),
        ([named("a"), templated("a")], ["spec.resourceClaims[1]"]),
        ([named(name) for name in "abcde"], ["spec.resourceClaims"]),
    ],
)
def test_claims_of_a_group_are_checked(entries: list[dict[str, str]], wrong: list[str]) -> None:
    """``TestDeclarativeValidate`` of ``pkg/registry/scheduling/podgroup``."""
    assert [one.field for one in kinds.validate_create(pod_group(*entries))] == wrong


@pytest.mark.parametrize(
    ("status", "wrong"),
    [
        ({"a": "foo-a-12345"}, []),
        ({"no-such-claim": "c"}, ["status.resourceClaimStatuses[0].name"]),
        ({"a": "%$!#5"}, ["status.resourceClaimStatuses[0].resourceClaimName"]),
    ],
)
def test_the_claims_in_the_status_of_a_group_are_checked(status: dict[str, str], wrong: list[str]) -> None:
    """``TestDeclarativeValidateStatusUpdate``."""
    old, new = pod_group(templated("a")), pod_group(templated("a"), **status)
    assert [one.field for one in kinds.validate_status_update(new, old)] == wrong


def test_without_its_gate_a_group_has_no_claims() -> None:
    group = pod_group(named("a"))
    assert [one.field for one in refusals.in_object(group)] == ["spec.resourceClaims"]
    assert refusals.in_object(group, (claims.GATE,)) == []
