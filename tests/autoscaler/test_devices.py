"""Node groups whose machines have devices: simulations allocate them, and a node in use is one whose devices are."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from kemu.emulated.autoscaler.simulator.devices import Simulated, UtilizationError
from kemu.emulated.scheduler.devices.trackers import Devices
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2
from kemu.runtime.env import Clock
from tests.autoscaler.test_autoscaler import Played, autoscaler, group, play

PODS = """
manifests:
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaimTemplate
  metadata: {name: gpus, namespace: default}
  spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, count: COUNT}}]}}}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: train}
  spec:
    replicas: REPLICAS
    selector: {matchLabels: {app: train}}
    template:
      metadata: {labels: {app: train}}
      spec:
        topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: SPREAD
          whenUnsatisfiable: ScheduleAnyway
          labelSelector: {matchLabels: {app: train}}
        resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]
        containers: [{name: main, resources: {requests: {cpu: 100m}, claims: [{name: gpu}]}}]
"""


def machines(count: int = 2, driver: str = "", **more: Any) -> str:
    """A group of machines with so many devices each; ``driver``: more keys of theirs."""
    devices = f"[{{driver: gpu.example.com, count: {count}, {driver}}}]"
    return group(template=f'{{allocatable: {{cpu: "8", memory: 16Gi, pods: "110"}}, devices: {devices}}}', **more)


def train(replicas: int, count: int = 1, spread: str = "kubernetes.io/os") -> str:
    """Pods of one ReplicaSet, each with a claim for ``count`` devices."""
    return PODS.replace("REPLICAS", str(replicas)).replace("COUNT", str(count)).replace("SPREAD", spread)


def sizes(played: Played) -> list[tuple[int, int]]:
    return [(data["from"], data["to"]) for _, data in played.of("autoscaler.scale_up")]


def running(played: Played) -> int:
    """How many pods came to run."""
    return int(played.counts["pods_running"])


# --- scale-up --------------------------------------------------------------------------------------------------------


def test_a_group_grows_by_as_many_nodes_as_the_devices_take(tmp_path: Path) -> None:
    """CPU would let all five pods on one node: simulations must allocate devices, each once."""
    played = play(tmp_path, autoscaler(machines(2)) + "duration: 5m\n" + train(5))
    assert sizes(played) == [(0, 3)]
    assert running(played) == 5


def test_claims_count_the_devices_that_they_ask_for(tmp_path: Path) -> None:
    played = play(tmp_path, autoscaler(machines(4)) + "duration: 5m\n" + train(3, count=3))
    assert sizes(played) == [(0, 3)]
    assert running(played) == 3


def test_devices_that_are_free_are_used_first(tmp_path: Path) -> None:
    played = play(tmp_path, autoscaler(machines(4, initial=1, min=1)) + "duration: 5m\n" + train(6))
    assert sizes(played) == [(1, 2)]
    assert running(played) == 6


def test_a_claim_that_no_group_can_serve_adds_nothing_and_says_why(tmp_path: Path) -> None:
    played = play(tmp_path, autoscaler(machines(2)) + "duration: 5m\n" + train(1, count=3))
    assert sizes(played) == []
    ((_, data),) = played.of("autoscaler.no_scale_up")
    assert "cannot allocate all claims" in data["why"]


def test_a_node_counts_as_one_to_come_until_its_driver_has_published(tmp_path: Path) -> None:
    """Its pods wait for the slices, for minutes: nobody asks for another node meanwhile."""
    late = machines(2, driver="publish: 200s")
    played = play(tmp_path, autoscaler(late) + "duration: 10m\n" + train(2))
    assert sizes(played) == [(0, 1)]
    assert running(played) == 2


# --- scale-down ------------------------------------------------------------------------------------------------------


def test_nodes_whose_devices_are_in_use_stay_however_idle_their_cpus_are(tmp_path: Path) -> None:
    played = play(tmp_path, autoscaler(machines(2, initial=2)) + "duration: 30m\n" + train(4))
    assert played.counts["nodes_removed"] == 0
    assert running(played) == 4


def test_pods_move_to_devices_that_are_free_elsewhere(tmp_path: Path) -> None:
    """Three nodes of four devices, spread over which three pods use one each: a third is below the threshold."""
    groups = autoscaler(machines(4, initial=3))
    played = play(tmp_path, groups + "duration: 1h\n" + train(3, spread="kubernetes.io/hostname"))
    assert played.counts["nodes_removed"] == 2


def test_pods_that_find_no_free_devices_keep_their_nodes(tmp_path: Path) -> None:
    """Whatever the threshold: each of two pods has both devices of its node."""
    played = play(
        tmp_path,
        autoscaler(machines(2, initial=2), scaleDown="{utilizationThreshold: 1}")
        + "duration: 30m\n"
        + train(2, count=2),
    )
    assert played.counts["nodes_removed"] == 0


# --- how much is used ------------------------------------------------------------------------------------------------


class Known:
    """Devices of a node ``n``, and a pod that has some of them."""

    def __init__(self) -> None:
        self.devices = Devices(cast(Clock, None))
        self.simulated = Simulated(self.devices)
        self.pod = core_v1_pb2.Pod()
        self.pod.metadata.namespace, self.pod.metadata.name = "default", "p"

    def publish(self, name: str, devices: list[str], *, counters: dict[str, int] | None = None, of: int = 1) -> None:
        """``devices``: names, with what each consumes of the counter set ``card`` behind a colon."""
        found = resource_v1_pb2.ResourceSlice()
        found.metadata.name = name
        spec = found.spec
        spec.driver, spec.nodeName = "d", "n"
        spec.pool.name, spec.pool.generation, spec.pool.resourceSliceCount = "pool", 1, of
        for text in devices:
            called, _, used = text.partition(":")
            device = spec.devices.add(name=called)
            if used:
                device.consumesCounters.add(counterSet="card").counters["memory"].value.string = used
        if counters:
            made = spec.sharedCounters.add(name="card")
            for counter, amount in counters.items():
                made.counters[counter].value.string = str(amount)
        self.devices.set_slice(found, is_there=True)

    def use(self, *names: str, allocated: bool = True, admin: bool = False) -> None:
        claim = resource_v1_pb2.ResourceClaim()
        claim.metadata.namespace, claim.metadata.name, claim.metadata.resourceVersion = "default", "c", "1"
        for name in names if allocated else ():
            result = claim.status.allocation.devices.results.add(driver="d", pool="pool", device=name)
            if admin:
                result.adminAccess = True
        self.devices.set_claim(claim)
        self.pod.spec.resourceClaims.add(name="c", resourceClaimName="c")

    def share(self) -> float | None:
        found = self.simulated.utilization("n", [self.pod])
        return None if found is None else found[0]


@pytest.fixture
def known() -> Known:
    return Known()


def test_a_node_without_slices_has_no_share(known: Known) -> None:
    assert known.share() is None


def test_whole_devices_count_alike(known: Known) -> None:
    known.publish("s", ["a", "b", "c", "d"])
    known.use("a")
    assert known.share() == 0.25


def test_administrators_use_nothing_up(known: Known) -> None:
    known.publish("s", ["a", "b"])
    known.use("a", admin=True)
    assert known.share() == 0


def test_parts_of_a_card_count_by_its_fullest_counter(known: Known) -> None:
    known.publish("counters", [], counters={"memory": 40}, of=2)
    known.publish("s", ["half:20", "quarter:10", "other:10"], of=2)
    known.use("half", "quarter")
    assert known.share() == pytest.approx(0.75)


def test_whole_devices_and_parts_weigh_by_their_numbers(known: Known) -> None:
    """Two whole devices, of which one is used, and a card that is half full."""
    known.publish("counters", [], counters={"memory": 40}, of=2)
    known.publish("s", ["a", "b", "half:20", "rest:20"], of=2)
    known.use("a", "half")
    assert known.share() == pytest.approx(0.5 * 2 / 3 + 0.5 * 1 / 3)


def test_missing_slices_and_claims_without_devices_are_no_share(known: Known) -> None:
    known.publish("s", ["a"], of=2)
    with pytest.raises(UtilizationError, match="pool lacks slices"):
        known.share()
    known.publish("s", ["a"])
    known.use("a", allocated=False)
    with pytest.raises(UtilizationError, match="claim default/c has no devices"):
        known.share()
