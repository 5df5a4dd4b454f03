"""Who is behind a Service: Endpoints, EndpointSlices, their mirroring, addresses of load balancers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.controllers.services import endpoints, hints, packing, subsets, trackers
from kemu.emulated.objects import meta, resources
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.messages.k8s import core_v1_pb2, discovery_v1_pb2
from kemu.runtime.runlog.frames import FILE_NAME, Reader

HEAD = """\
apiVersion: kemu.dev/v1
kind: Scenario
spec:
  duration: 2m
  controllers: [endpoints, endpointslice, endpointslice-mirroring, service-lb, replicaset, garbage-collector]
  manifests:
    - apiVersion: v1
      kind: Node
      metadata: {name: n, labels: {topology.kubernetes.io/zone: z}}
      spec: {podCIDR: 10.1.0.0/24}
      status: {allocatable: {cpu: "4", memory: 4Gi, pods: "110"}, addresses: [{type: InternalIP, address: 10.0.0.1}]}
    - apiVersion: apps/v1
      kind: ReplicaSet
      metadata: {name: web}
      spec:
        replicas: 3
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec: {containers: [{name: c, ports: [{name: http, containerPort: 8080}, {name: m, containerPort: 9090}]}]}
"""
WEB = """\
    - apiVersion: v1
      kind: Service
      metadata: {name: web, labels: {a: b}}
      spec:
        selector: {app: web}
        ports:
          - {name: http, port: 80, targetPort: http}
          - {name: m, port: 81, targetPort: m}
          - {name: z, port: 82, targetPort: 7000}
"""


def play(text: str, folder: Path) -> dict[str, dict[str, Any]]:
    """The objects at the end, by plural and name."""
    result = runner.run(loader.loads(text), runner.Options(out=folder))
    assert result.verdict["verdict"] != "fail", result.verdict
    found: dict[str, dict[str, Any]] = {}
    with Reader(folder / FILE_NAME) as reader:
        for event in reader:
            if event.kind == "store.txn":
                for _, key, value, _, _ in event.data["changes"]:
                    plural, _, name = key.removeprefix("/registry/").partition("/")
                    row = resources.BY_PLURAL.get(plural)
                    objects = found.setdefault(plural, {})
                    if value and row is not None:
                        objects[name.rpartition("/")[2]] = row.message.FromString(value)
                    else:
                        objects.pop(name.rpartition("/")[2], None)
    return found


def slices_of(found: dict[str, dict[str, Any]], service: str) -> list[discovery_v1_pb2.EndpointSlice]:
    return [
        one for one in found["endpointslices"].values() if one.metadata.labels["kubernetes.io/service-name"] == service
    ]


def test_a_service_has_its_pods_in_the_order_of_kubernetes(tmp_path: Path) -> None:
    found = play(HEAD + WEB, tmp_path)
    (one,) = slices_of(found, "web")
    assert dict(one.metadata.labels) == {
        "a": "b",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "kubernetes.io/service-name": "web",
    }
    assert one.metadata.ownerReferences[0].controller
    # As kube-controller-manager v1.36.3 orders them.
    assert [(port.name, port.port) for port in one.ports] == [("http", 8080), ("z", 7000), ("m", 9090)]
    assert len(one.endpoints) == 3
    for endpoint in one.endpoints:
        conditions = endpoint.conditions
        assert (conditions.ready, conditions.serving, conditions.terminating) == (True, True, False)
        assert (endpoint.nodeName, endpoint.zone, endpoint.targetRef.kind) == ("n", "z", "Pod")
        assert endpoint.addresses[0].startswith("10.1.0.")
    (subset,) = found["endpoints"]["web"].subsets
    assert [port.name for port in subset.ports] == ["m", "http", "z"]
    assert [one.ip for one in subset.addresses] == sorted(endpoint.addresses[0] for endpoint in one.endpoints)


def test_what_changes_of_a_service_changes_its_slices(tmp_path: Path) -> None:
    events = """\
  events:
    - {at: 20s, patch: {kind: ReplicaSet, name: web, merge: {spec: {replicas: 0}}}}
    - at: 60s
      create: {apiVersion: v1, kind: Service, metadata: {name: gone}, spec: {selector: {a: b}, ports: [{port: 1}]}}
    - {at: 70s, delete: {kind: Service, name: gone}}
"""
    found = play(HEAD + WEB + events, tmp_path)
    (one,) = slices_of(found, "web")
    assert not one.endpoints
    assert not one.ports
    assert not found["endpoints"]["web"].subsets
    assert not slices_of(found, "gone")
    assert "gone" not in found["endpoints"]


def test_endpoints_without_a_selector_are_mirrored(tmp_path: Path) -> None:
    more = """\
    - {apiVersion: v1, kind: Service, metadata: {name: own}, spec: {ports: [{port: 80, name: a}]}}
    - apiVersion: v1
      kind: Endpoints
      metadata: {name: own, labels: {x: y}}
      subsets: [{addresses: [{ip: 10.9.0.1}], notReadyAddresses: [{ip: 10.9.0.2}], ports: [{port: 80, name: a}]}]
"""
    (one,) = slices_of(play(HEAD + more, tmp_path), "own")
    assert one.metadata.labels["endpointslice.kubernetes.io/managed-by"] == "endpointslicemirroring-controller.k8s.io"
    assert one.metadata.labels["x"] == "y"
    assert {(one.addresses[0], one.conditions.ready) for one in one.endpoints} == {
        ("10.9.0.1", True),
        ("10.9.0.2", False),
    }


def test_a_load_balancer_has_an_address_as_long_as_it_is_one(tmp_path: Path) -> None:
    more = """\
    - {apiVersion: v1, kind: Service, metadata: {name: lb}, spec: {type: LoadBalancer, ports: [{port: 80}]}}
    - {apiVersion: v1, kind: Service, metadata: {name: was}, spec: {type: LoadBalancer, ports: [{port: 80}]}}
  events:
    - {at: 20s, patch: {kind: Service, name: was, merge: {spec: {type: ClusterIP}}}}
"""
    found = play(HEAD + more, tmp_path)["services"]
    assert [one.ip for one in found["lb"].status.loadBalancer.ingress] == ["203.0.113.1"]
    assert list(found["lb"].metadata.finalizers) == ["service.kubernetes.io/load-balancer-cleanup"]
    was = found["was"]
    assert not was.status.loadBalancer.ingress
    assert not was.metadata.finalizers
    assert not was.spec.ports[0].nodePort
    assert not was.spec.HasField("allocateLoadBalancerNodePorts")
    assert not was.spec.externalTrafficPolicy


# --- packing -------------------------------------------------------------------------------------------------------


def endpoint(number: int, *, ready: bool = True) -> discovery_v1_pb2.Endpoint:
    made = discovery_v1_pb2.Endpoint(addresses=[f"10.0.{number // 250}.{number % 250}"])
    made.targetRef.name = f"p-{number}"
    made.conditions.ready = ready
    return made


def desired(numbers: range) -> packing.Desired:
    return {endpoints.identity(one): one for one in map(endpoint, numbers)}


def existing(name: str, numbers: range) -> discovery_v1_pb2.EndpointSlice:
    made = discovery_v1_pb2.EndpointSlice(endpoints=map(endpoint, numbers))
    made.metadata.name = name
    return made


def pack(slices: list[discovery_v1_pb2.EndpointSlice], wanted: packing.Desired) -> packing.Plan:
    return packing.pack(slices, wanted, 100, lambda copy: False, discovery_v1_pb2.EndpointSlice)


def test_new_slices_are_filled_one_after_the_other() -> None:
    plan = pack([], desired(range(250)))
    assert [len(one.endpoints) for one in plan.create] == [100, 100, 50]
    assert not plan.update
    assert not plan.delete


def test_one_more_endpoint_changes_the_slice_that_it_fills_best() -> None:
    slices = [existing("a", range(50)), existing("b", range(50, 140)), existing("c", range(140, 240))]
    plan = pack(slices, desired(range(241)))
    assert [(one.metadata.name, len(one.endpoints)) for one in plan.update] == [("b", 91)]
    assert not plan.create


def test_new_endpoints_go_into_slices_that_change_anyway() -> None:
    slices = [existing("a", range(90)), existing("b", range(90, 100))]
    wanted = desired(range(1, 101))
    plan = pack(slices, wanted)
    assert [(one.metadata.name, len(one.endpoints)) for one in plan.update] == [("a", 90)]


def test_a_slice_without_endpoints_goes() -> None:
    plan = pack([existing("a", range(3)), existing("b", range(3, 5))], desired(range(3)))
    assert [one.metadata.name for one in plan.delete] == ["b"]
    assert not plan.update


def test_another_state_updates_the_slice_in_its_place() -> None:
    wanted = desired(range(3))
    wanted[endpoints.identity(endpoint(1))] = endpoint(1, ready=False)
    (one,) = pack([existing("a", range(3))], wanted).update
    assert [each.conditions.ready for each in one.endpoints] == [True, False, True]


@pytest.mark.parametrize(
    ("distribution", "zones", "nodes"),
    [("", [], []), ("PreferClose", ["z"], []), ("PreferSameZone", ["z"], []), ("PreferSameNode", ["z"], ["n"])],
)
def test_hints_follow_the_traffic_distribution(distribution: str, zones: list[str], nodes: list[str]) -> None:
    service = core_v1_pb2.Service()
    if distribution:
        service.spec.trafficDistribution = distribution
    one = endpoint(1)
    one.zone, one.nodeName = "z", "n"
    one.hints.forZones.add(name="elsewhere")
    found = discovery_v1_pb2.EndpointSlice(endpoints=[one])
    assert hints.put(service, found)
    assert not hints.put(service, found)
    assert [each.name for each in found.endpoints[0].hints.forZones] == zones
    assert [each.name for each in found.endpoints[0].hints.forNodes] == nodes


def test_subsets_are_as_few_as_can_be() -> None:
    def one(ip: str, port: int, *, ready: bool = True) -> core_v1_pb2.EndpointSubset:
        field = "addresses" if ready else "notReadyAddresses"
        address = core_v1_pb2.EndpointAddress(ip=ip)
        return core_v1_pb2.EndpointSubset(**{field: [address]}, ports=[core_v1_pb2.EndpointPort(port=port)])  # type: ignore[arg-type]

    found = subsets.repack([one("10.0.0.2", 1), one("10.0.0.1", 1), one("10.0.0.1", 2), one("10.0.0.2", 2)])
    assert [([each.ip for each in subset.addresses], len(subset.ports)) for subset in found] == [
        (["10.0.0.1", "10.0.0.2"], 2)
    ]
    (mixed,) = subsets.repack([one("10.0.0.1", 1), one("10.0.0.1", 1, ready=False)])
    assert not mixed.addresses
    assert [each.ip for each in mixed.notReadyAddresses] == ["10.0.0.1"]


def test_endpoints_end_at_a_thousand_addresses() -> None:
    many = core_v1_pb2.EndpointSubset(
        addresses=[core_v1_pb2.EndpointAddress(ip=str(number)) for number in range(800)],
        notReadyAddresses=[core_v1_pb2.EndpointAddress(ip=str(number)) for number in range(400)],
    )
    few = core_v1_pb2.EndpointSubset(notReadyAddresses=[core_v1_pb2.EndpointAddress(ip="x")] * 100)
    found = [many, few]
    assert subsets.truncate(found)
    assert subsets.count(found) == 1000
    assert len(many.addresses) == 800
    assert len(few.notReadyAddresses) == 40
    assert not subsets.truncate(found)


def test_a_tracker_knows_what_the_informer_does_not_show_yet() -> None:
    tracker, one = trackers.Tracker(), existing("a", range(1))
    one.metadata.uid, one.metadata.generation, one.metadata.namespace = "u", 2, "default"
    one.metadata.labels["kubernetes.io/service-name"] = "web"
    tracker.update(one)
    assert tracker.is_stale("default/web", [])
    older = meta.copied(one)
    older.metadata.generation = 1
    assert tracker.is_stale("default/web", [older])
    assert not tracker.is_stale("default/web", [one])
    assert not tracker.is_news(one)
    tracker.expect_deletion(one)
    assert tracker.is_stale("default/web", [one])
    assert tracker.is_expected(one)
    assert not tracker.is_stale("default/web", [])
