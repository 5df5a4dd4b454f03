"""GPU cards: a kubelet takes a pod on the card that its annotation names, or not at all."""

from __future__ import annotations

import pytest

from kemu.messages.k8s import core_v1_pb2
from tests.kubelet.cluster import Cluster, node, pod

GPUS = {"nvidia.com/gpu": "2", "kemu.dev/gpu-milli": "2000"}


def part(name: str, milli: int, card: str | None) -> core_v1_pb2.Pod:
    found = pod(name, "100m")
    amounts = {"kemu.dev/gpu-milli": str(milli)}
    if milli >= 1000:
        amounts["nvidia.com/gpu"] = str(milli // 1000)
    resources = found.spec.containers[0].resources
    for resource, amount in amounts.items():
        resources.requests[resource].string = amount
        resources.limits[resource].string = amount
    if card is not None:
        found.metadata.annotations["kemu.dev/gpu-card"] = card
    return found


def outcome(cluster: Cluster, there: list[core_v1_pb2.Pod], comes: core_v1_pb2.Pod) -> tuple[str, str]:
    """Reason and message of the decision about a pod, with these on the node."""

    async def main(cluster: Cluster) -> None:
        await cluster.create(*there)
        await cluster.at(1)
        await cluster.create(comes)
        await cluster.at(2)
        assert await cluster.phase(comes.metadata.name) == ("Running" if not found()["reason"] else "Failed")

    def found() -> dict[str, str]:
        return dict(cluster.data("admit", comes.metadata.name)[0])

    cluster.play(main, [node(**GPUS)])
    assert all(one["ok"] for one in cluster.data("admit") if one["pod"] != f"default/{comes.metadata.name}")
    return found()["reason"], found()["message"]


@pytest.mark.parametrize("card", ["1", None])
def test_a_card_with_enough_left_is_given(cluster: Cluster, card: str | None) -> None:
    there = [part("a", 600, "0"), part("b", 300, "1")]
    assert outcome(cluster, there, part("c", 700, card)) == ("", "")


@pytest.mark.parametrize(
    ("milli", "card", "why"),
    [
        (700, "0", "GPU card 0 has 400 milli left, 700 are requested"),
        (100, "2", "there is no GPU card 2"),
        (1000, "1", "GPU card 1 has 700 milli left, 1000 are requested"),
        (100, "0,1", "the pod names no GPU card that could be its own"),
        (100, "first", "the pod names no GPU card that could be its own"),
    ],
)
def test_a_card_that_is_taken_or_not_there_is_refused(cluster: Cluster, milli: int, card: str, why: str) -> None:
    there = [part("a", 600, "0"), part("b", 300, "1")]
    message = f"Allocate failed due to {why}, which is unexpected."
    assert outcome(cluster, there, part("c", milli, card)) == ("UnexpectedAdmissionError", message)


def test_whole_cards_are_taken_one_by_one(cluster: Cluster) -> None:
    _reason, message = outcome(cluster, [part("a", 1000, "1")], part("c", 2000, "0,1"))
    assert "GPU card 1 has 0 milli left" in message


def test_a_card_is_free_when_its_pod_has_ended(cluster: Cluster) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.create(part("a", 900, "0"))
        await cluster.at(1)
        await cluster.client.delete("pods", "a", "default")
        await cluster.at(40)
        await cluster.create(part("b", 900, "0"))
        await cluster.at(41)
        assert await cluster.phase("b") == "Running"

    cluster.play(main, [node(**GPUS)])
