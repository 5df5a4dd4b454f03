"""What the status of containers says of the devices that they claim (gate ResourceHealthStatus)."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.k8s.resource_v1_pb2 import ResourceClaim
from tests.kubelet.cluster import Cluster, pod

DRIVER = "gpu.example.com"


def _claim(user: core_v1_pb2.Pod) -> ResourceClaim:
    results = [
        {"request": request, "driver": DRIVER, "pool": "n1", "device": f"gpu-{number}"}
        for number, request in enumerate(("a", "a", "b/second"))
    ]
    status = {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "name": user.metadata.name, "uid": user.metadata.uid}],
    }
    requests = [{"name": name, "exactly": {"deviceClassName": "gpu", "count": count}} for name, count in (("a", 2),)]
    requests.append({"name": "b", "firstAvailable": [{"name": "second", "deviceClassName": "gpu", "count": 1}]})
    return convert.from_json(
        ResourceClaim,
        {
            "metadata": {"name": "g", "namespace": "default"},
            "spec": {"devices": {"requests": requests}},
            "status": status,
        },
    )


def _told(found: core_v1_pb2.Pod | None) -> dict[str, list[tuple[str, ...]]]:
    assert found is not None
    return {
        f"{one.name} {each.name}": [(of.resourceID, of.health, of.message) for of in each.resources]
        for one in found.status.containerStatuses
        for each in one.allocatedResourcesStatus
    }


async def _start(cluster: Cluster) -> None:
    """A pod with two containers: one uses the whole claim, the other one request of it."""
    wanted = pod("p", run=60, restart="Never")
    wanted.spec.resourceClaims.add(name="c", resourceClaimName="g")
    wanted.spec.containers[0].resources.claims.add(name="c")
    wanted.spec.containers.add(name="other", image="app").resources.claims.add(name="c", request="b")
    wanted.spec.containers.add(name="none", image="app")
    wanted.spec.nodeName = ""
    made = await cluster.client.create(wanted)
    claim = _claim(made)
    created = await cluster.client.create(claim)
    created.status.CopyFrom(claim.status)
    await cluster.client.update_status(created)
    await cluster.client.bind("default", "p", made.metadata.uid, "n1")


def _devices(**more: Any) -> list[dict[str, Any]]:
    return [{"driver": DRIVER, "count": 3, **more}]


def test_a_driver_that_reports_no_health_leaves_it_unknown(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await _start(cluster)
        await cluster.at(10)
        ids = [f"{DRIVER}/n1/gpu-{number}" for number in range(3)]
        unknown = [(one, "Unknown", "") for one in ids]
        assert _told(await cluster.get("p")) == {"main claim:c": unknown, "other claim:c/b": unknown[2:]}

    cluster.play(main, devices=_devices())


@pytest.mark.parametrize("message", ["too hot", ""])
def test_an_unhealthy_device_shows_in_the_status_and_heals(cluster: Cluster, message: str) -> None:
    async def main(cluster: Cluster) -> None:
        await _start(cluster)
        await cluster.at(10)
        before = _told(await cluster.get("p"))
        assert {one[1] for one in before["main claim:c"]} == {"Healthy"}
        parameters = {"node": ["kubelet/n1"], "devices": ["gpu-2"], **({"message": message} if message else {})}
        await cluster.runtime.inject("ill", "devicesUnhealthy", parameters)
        await cluster.at(12)
        told = _told(await cluster.get("p"))
        assert [one[1] for one in told["main claim:c"]] == ["Healthy", "Healthy", "Unhealthy"]
        assert told["other claim:c/b"] == [(f"{DRIVER}/n1/gpu-2", "Unhealthy", message)]
        cluster.runtime.faults.end("ill")
        await cluster.at(14)
        assert _told(await cluster.get("p")) == before
        await cluster.at(80)
        # Its claims are unprepared by then.
        assert _told(await cluster.get("p")) == {}

    cluster.play(main, devices=_devices(health=True))
