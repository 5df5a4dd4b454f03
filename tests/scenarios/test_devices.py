"""Devices from the drivers of nodes to the pods that claim them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import kemu
from kemu import errors
from kemu.emulated.objects.devices import claims
from kemu.emulated.scheduler.devices.pod_claims import PodClaims
from kemu.lab.scenario.loading import loader
from kemu.messages.k8s.resource_v1_pb2 import ResourceClaim, ResourceClaimConsumerReference

TEMPLATE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}]}}},
}


def pod(name: str, at: str, **annotations: str) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"claims": [{"name": "g"}]}}
    claims = [{"name": "g", "resourceClaimTemplateName": "one"}]
    spec = {"restartPolicy": "Never", "resourceClaims": claims, "containers": [container]}
    metadata = {"name": name, "annotations": {f"kemu.dev/{key}": value for key, value in annotations.items()}}
    return {"at": at, "create": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}}


def document(*events: dict[str, Any], **spec: Any) -> str:
    nodes = [{"name": "n", "devices": [{"driver": "gpu.example.com", "count": 1, "unprepare": "2s"}]}]
    manifests = [TEMPLATE, *spec.pop("manifests", [])]
    body = {"seed": 1, "duration": "2m", "nodes": nodes, "manifests": manifests, "events": list(events), **spec}
    scenario = {"apiVersion": "kemu.dev/v1", "kind": "Scenario", "metadata": {"name": "devices"}, "spec": body}
    return yaml.safe_dump(scenario)


def play(tmp_path: Path, text: str) -> list[tuple[float, str, dict[str, Any]]]:
    (tmp_path / "scenario.yaml").write_text(text)
    run = kemu.run(tmp_path / "scenario.yaml", out=tmp_path / "run")
    return [(event.time_ns / 1e9, event.kind, dict(event.data)) for event in run.events]


def test_the_next_pod_gets_the_device_when_it_is_unprepared(tmp_path: Path) -> None:
    events = play(tmp_path, document(pod("a", "5s", **{"run-seconds": "10"}), pod("b", "6s")))
    at = {(kind, data.get("pod", data.get("claim", ""))): time for time, kind, data in events}
    unprepared = at["devices.unprepared", "default/a"]
    freed = next(time for time, kind, _ in events if kind == "devices.deallocated")
    prepared = at["devices.prepared", "default/b"]
    assert 2 <= unprepared - at["devices.prepared", "default/a"] - 10 < 3
    assert unprepared < freed < prepared


def test_a_driver_that_fails_is_asked_again(tmp_path: Path) -> None:
    chaos = [{"at": "1s", "for": "20s", "prepareFails": {"node": "n"}}]
    events = play(tmp_path, document(pod("a", "5s"), chaos=chaos))
    failed = [round(time) for time, kind, _ in events if kind == "devices.prepare_failed"]
    assert failed == [5, 15]
    assert [round(time) for time, kind, _ in events if kind == "devices.prepared"] == [25]


def test_devices_vanish_and_come_back(tmp_path: Path) -> None:
    chaos = [{"at": "2s", "for": "20s", "devicesVanish": {"node": "n"}}]
    events = play(tmp_path, document(pod("a", "5s"), chaos=chaos))
    published = [(data["generation"], data["devices"]) for _, kind, data in events if kind == "devices.slice"]
    assert published == [(1, 1), (2, 0), (3, 1)]
    bound = [time for time, kind, _ in events if kind == "devices.prepared"]
    assert bound
    assert bound[0] > 22


def test_a_device_that_has_vanished_is_not_prepared(tmp_path: Path) -> None:
    """It was allocated before, and its driver could not prepare it in time."""
    chaos = [
        {"at": "1s", "for": "10s", "prepareFails": {"node": "n"}},
        {"at": "7s", "for": "20s", "devicesVanish": {"node": "n"}},
    ]
    events = play(tmp_path, document(pod("a", "5s"), chaos=chaos))
    failures = [data["why"].rpartition(": ")[2] for _, kind, data in events if kind == "devices.prepare_failed"]
    assert failures[0].startswith("driver ")
    assert set(failures[1:]) == {"gpu-0"}
    assert next(time for time, kind, _ in events if kind == "devices.prepared") > 27


def test_slices_come_late(tmp_path: Path) -> None:
    chaos = [{"at": "3s", "for": "60s", "lateSlices": {"node": "n", "by": "30s"}}]
    restart = {"at": "4s", "crash": {"actor": "kubelet/n"}}
    events = play(tmp_path, document(pod("a", "10s"), chaos=[*chaos, restart]))
    times = [time for time, kind, _ in events if kind == "devices.slice"]
    assert len(times) == 2
    assert times[1] > 34


def test_quota_counts_devices_by_class(tmp_path: Path) -> None:
    hard = {"gpu.example.com.deviceclass.resource.k8s.io/devices": "1"}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": hard},
    }
    events = play(tmp_path, document(pod("a", "5s"), pod("b", "20s"), manifests=[quota]))
    made = [data["pod"] for _, kind, data in events if kind == "devices.claim"]
    assert made == ["default/a"]


def _made_under(tmp_path: Path, hard: dict[str, str], *events: dict[str, Any]) -> list[str]:
    """The claims that the controller could make, with a class that stands behind an extended resource."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
    manifests = [
        quota | {"spec": {"hard": hard}},
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu.example.com"},
            "spec": {"extendedResourceName": "example.com/gpu"},
        },
    ]
    text = document(*events, manifests=manifests)
    return [data["pod"] for _, kind, data in play(tmp_path, text) if kind == "devices.claim"]


@pytest.mark.parametrize(
    "name",
    [
        "requests.example.com/gpu",
        "requests.deviceclass.resource.kubernetes.io/gpu.example.com",
        "gpu.example.com.deviceclass.resource.k8s.io/devices",
    ],
)
def test_claims_count_as_the_extended_resource_behind_their_class(tmp_path: Path, name: str) -> None:
    events = (pod("a", "5s", **{"run-seconds": "10"}), pod("b", "6s"), pod("c", "40s"))
    # b's claim is made only when that of a has gone.
    assert _made_under(tmp_path, {name: "1"}, *events) == ["default/a", "default/b"]


def test_another_extended_resource_does_not_count(tmp_path: Path) -> None:
    assert _made_under(tmp_path, {"requests.example.com/nic": "0"}, pod("a", "5s")) == ["default/a"]


def test_members_of_a_group_share_an_allocation_that_is_not_written_yet(tmp_path: Path) -> None:
    """Both get a node in one cycle; the binding that comes second meets the allocation of the first, and is tried
    again."""
    gates = {"GenericWorkload": True, "GangScheduling": True, "SchedulerPopFromBackoffQ": False}
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
    metadata = {"namespace": "default"}
    manifests = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "one", **metadata}}
        | {"spec": spec},
        {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g", **metadata}}
        | {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
    ]
    members = [pod(name, "5s") for name in "ab"]
    for member in members:
        wanted = member["create"]["spec"]
        wanted["resourceClaims"] = [{"name": "g", "resourceClaimName": "one"}]
        wanted["schedulingGroup"] = {"podGroupName": "g"}
    schedulers = [{"name": "default-scheduler", "config": {"featureGates": gates}}]
    events = play(tmp_path, document(*members, manifests=manifests, schedulers=schedulers))
    attempts = [(data["pod"], data["n"], data["result"]) for _, kind, data in events if kind == "sched.attempt"]
    assert sorted(attempts[:2]) == [("default/a", 1, "scheduled"), ("default/b", 1, "scheduled")]
    running = {data["pod"] for _, kind, data in events if kind == "kubelet.running"}
    assert running == {"default/a", "default/b"}


def test_nothing_runs_where_nobody_speaks_of_devices() -> None:
    scenario = loader.loads("apiVersion: kemu.dev/v1\nkind: Scenario\nmetadata: {name: a}\nspec: {nodes: [{name: n}]}")
    assert not scenario.devices
    assert not {"resourceclaim", "device-taint-eviction"} & set(scenario.controllers)


def test_mistakes_about_devices() -> None:
    wrong = document().replace("driver: gpu.example.com", "driver: gpu.example.com\n      attributes: {model: [a]}", 1)
    with pytest.raises(errors.ScenarioError) as refused:
        loader.loads(wrong)
    assert "model: must be a text, a whole number" in str(refused.value)


def listed(*devices: str) -> dict[str, Any]:
    """A device for each name, which takes one of the two slots that they share."""
    counters = {"slots": {"value": "2"}}
    taken = [{"counterSet": "card", "counters": {"slots": {"value": "1"}}}]
    return {
        "driver": "gpu.example.com",
        "pool": "cards",
        "sharedCounters": [{"name": "card", "counters": counters}],
        "devices": [{"name": name, "consumesCounters": taken} for name in devices],
    }


def test_devices_can_be_listed_as_in_a_slice(tmp_path: Path) -> None:
    nodes = [{"name": "n", "devices": [listed("a", "b", "c")]}]
    events = play(tmp_path, document(*(pod(name, "5s") for name in "pqr"), nodes=nodes))
    assert [data["devices"] for _, kind, data in events if kind == "devices.slice"] == [3]
    assert len([1 for _, kind, _ in events if kind == "devices.prepared"]) == 2, "two slots for three devices"


def test_slices_among_the_manifests_are_published_by_the_drivers_of_their_nodes(tmp_path: Path) -> None:
    group = listed("a", "b", "c")
    pool = {"name": "cards", "generation": 7, "resourceSliceCount": 2}
    parts = [{"sharedCounters": group["sharedCounters"]}, {"devices": group["devices"]}, {"devices": [{"name": "old"}]}]
    slices = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"s{index}"},
            "spec": {
                "driver": group["driver"],
                "nodeName": "n",
                "pool": {**pool, "generation": 7 - index // 2},
                **part,
            },
        }
        for index, part in enumerate(parts)
    ]
    text = document(*(pod(name, "5s") for name in "pqr"), nodes=[{"name": "n"}], manifests=slices)
    events = play(tmp_path, text)
    assert [data["devices"] for _, kind, data in events if kind == "devices.slice"] == [3], (
        "the newest generation counts"
    )
    assert len([1 for _, kind, _ in events if kind == "devices.prepared"]) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"devices": []}, "count is missing"),
        ({"count": 2}, "count: cannot stand beside devices"),
        ({"devices": [{"nam": "a"}]}, "nam"),
        ({"sharedCounters": [{"name": 3}]}, "name"),
    ],
)
def test_mistakes_in_listed_devices_are_told(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    (tmp_path / "s.yaml").write_text(document(nodes=[{"name": "n", "devices": [{**listed("a"), **change}]}]))
    with pytest.raises(errors.ScenarioError, match=said):
        loader.load(tmp_path / "s.yaml")


# Kinds on watch streams of their own ----------------------------------------------------------------------------------

WITHDRAWN, WRONG = "devices/withdrawn-device", "gets-what-is-there"


@pytest.mark.parametrize("runtime", ["sim", "wall"])
@pytest.mark.parametrize("streams", ["shared", "perKind"])
@pytest.mark.parametrize("late", ["resourceslices", "pod*"])
def test_events_of_a_kind_are_late(runtime: str, streams: str, late: str) -> None:
    """On one stream, too: the API server itself holds them back."""
    fault = {"at": "3s", "delay": {"from": "apiserver/*", "to": "scheduler/*", "by": "2s", "resource": late}}
    settings = {"chaos": [fault], "informers": {"streams": streams}}
    run = kemu.run(WITHDRAWN, settings=settings, runtime=runtime, speed=10.0 if runtime == "wall" else None)
    assert [finding.id for finding in run.failures] == ([WRONG] if late == "resourceslices" else [])


# Claims of PodGroups --------------------------------------------------------------------------------------------------

ON = {"GenericWorkload": True, "GangScheduling": True, "DRAWorkloadResourceClaims": True}


def gang(**featureGates: bool) -> str:  # noqa: N803  # as a scheduler's configuration calls them
    """Three pods share a device; they end at 20 s, their group at 30 s."""
    entry = {"name": "g", "resourceClaimTemplateName": "one"}
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}, "resourceClaims": [entry]},
    }
    members = [pod(f"m{number}", "5s") for number in range(3)]
    for member in members:
        member["create"]["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
    ends: list[dict[str, Any]] = [{"at": "20s", "delete": {"kind": "Pod", "name": f"m{number}"}} for number in range(3)]
    ends.append({"at": "30s", "delete": {"kind": "PodGroup", "name": "gang"}})
    schedulers = [{"name": "default-scheduler", "config": {"featureGates": featureGates}}]
    return document(*members, *ends, manifests=[group], schedulers=schedulers, duration="40s")


def consumers(events: list[tuple[float, str, dict[str, Any]]]) -> set[tuple[str, ...]]:
    """For whom claims have been reserved."""
    found = set()
    for _, kind, data in events:
        for _op, key, value, *_ in data["changes"] if kind == "store.txn" else ():
            if key.startswith("/registry/resourceclaims/") and value:
                users = ResourceClaim.FromString(value).status.reservedFor
                found.add(tuple(f"{one.apiGroup}/{one.resource}/{one.name}" for one in users))
    return found


def test_a_gang_shares_the_claim_of_its_group(tmp_path: Path) -> None:
    events = play(tmp_path, gang(**ON))
    made = [data for _, kind, data in events if kind == "devices.claim"]
    assert [(one["group"], one["pod"]) for one in made] == [("default/gang", "")]
    assert made[0]["claim"].startswith("default/gang-g-")
    prepared = [data for _, kind, data in events if kind == "devices.prepared"]
    assert sorted(one["pod"] for one in prepared) == ["default/m0", "default/m1", "default/m2"]
    assert {tuple(one["claims"]) for one in prepared} == {(made[0]["claim"],)}
    assert consumers(events) == {(), ("scheduling.k8s.io/podgroups/gang",)}
    # It keeps its device as long as the group is there.
    assert [round(time) for time, kind, _ in events if kind == "devices.deallocated"] == [30]
    assert [data["kind"] for _, kind, data in events if kind == "gc.deleted"] == ["ResourceClaim"]


def test_a_planted_bug_reserves_the_claim_for_each_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the device is free as soon as the pods are gone."""

    def of_pod(self: PodClaims, place: int) -> ResourceClaimConsumerReference:
        return claims.consumer_of(self.pod, None, self.pod.spec.resourceClaims[place])

    monkeypatch.setattr(PodClaims, "consumer", of_pod)
    events = play(tmp_path, gang(**ON))
    assert next(round(time) for time, kind, _ in events if kind == "devices.deallocated") < 25
    assert ("scheduling.k8s.io/podgroups/gang",) not in consumers(events)


def test_a_group_that_has_no_node_gives_its_claim_back(tmp_path: Path) -> None:
    """It is reserved for the group, but no member has a node, and the node of its device is full
    (``unreservePodGroupClaims``)."""
    gates = ON | {"SchedulerPopFromBackoffQ": False}
    schedulers = [{"name": "default-scheduler", "config": {"featureGates": gates}}]
    entry = {"name": "g", "resourceClaimName": "c"}
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}, "resourceClaims": [entry]},
    }
    device = {"driver": "gpu.example.com", "pool": "n", "device": "gpu-0", "request": "r"}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": "c",
            "namespace": "default",
            "finalizers": ["resource.kubernetes.io/delete-protection"],
        },
        "spec": TEMPLATE["spec"]["spec"],
        "status": {
            "allocation": {"devices": {"results": [device]}},
            "reservedFor": [{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang", "uid": "u"}],
        },
    }
    member = pod("m", "5s")
    member["create"]["spec"] |= {"schedulingGroup": {"podGroupName": "gang"}, "resourceClaims": [entry]}
    member["create"]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1000"}
    events = play(tmp_path, document(member, manifests=[group, claim], schedulers=schedulers, duration="20s"))
    tries = [data["message"] for _, kind, data in events if kind == "sched.attempt"]
    assert "ResourceClaim unreserved for PodGroup" in tries[0]
    assert "still not schedulable" in tries[-1]
    assert {("scheduling.k8s.io/podgroups/gang",), ()} <= consumers(events)


def test_groups_have_no_claims_without_the_gate(tmp_path: Path) -> None:
    with pytest.raises(errors.ScenarioError, match="no scheduler has the feature gate DRAWorkloadResourceClaims"):
        play(tmp_path, gang(GenericWorkload=True, GangScheduling=True))
