"""Claims for devices: stored and checked as Kubernetes does, though nobody in kemu allocates any."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.validation import kinds


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
        ({"name": "", "exactly": {"deviceClassName": "gpu"}}, "spec.devices.requests[0].name", "Required value"),
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


def test_attributes_of_devices_and_lists_of_quantities_convert_both_ways() -> None:
    policy = {"default": "1Gi", "validValues": ["1Gi", "2Gi"]}
    device = {
        "name": "gpu-0",
        "attributes": {"model": {"string": "A100"}, "cores": {"int": 108}},
        "capacity": {"memory": {"value": "80Gi", "requestPolicy": policy}},
    }
    obj = resource_slice(nodeName="a", devices=[device])
    assert convert.to_json(obj)["spec"]["devices"] == [device]
