"""``gpu-share`` beside the recorded scenario: what becomes of a card when a binding goes wrong."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.scheduler.extenders.gpus import GpuShare
from kemu.errors import Conflict
from tests.scheduler import objects

GPU = {"kemu.dev/gpu-memory": "8"}


class Refusing:
    """A client whose bindings are refused; ``meanwhile`` is called first."""

    def __init__(self) -> None:
        self.meanwhile: Any = lambda: None

    async def patch(self, *args: Any, **kwargs: Any) -> None:
        pass

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        self.meanwhile()
        raise Conflict(f"pod {name} is already assigned to node {node}")


def extender(client: Refusing) -> tuple[GpuShare, Any, Any]:
    found = GpuShare(None, client, {})  # type: ignore[arg-type]
    node, pod = objects.node("n", **GPU), objects.pod("a")
    pod.spec.containers[0].resources.requests["kemu.dev/gpu-memory"].string = "5"
    found.nodes["n"], found.pods[pod.metadata.uid] = node, pod
    return found, pod, node


async def test_a_refused_binding_gives_the_card_back() -> None:
    found, pod, node = extender(Refusing())
    with pytest.raises(Conflict):
        await found.bind(pod, "n")
    assert found.filter(pod, node) is None


async def test_a_pod_that_turns_out_to_be_bound_already_is_a_conflict_and_no_more() -> None:
    """The answer to the first request was lost, and the scheduler asked again."""
    client = Refusing()
    found, pod, node = extender(client)
    other = objects.pod("b")
    other.CopyFrom(pod)
    other.metadata.uid = "uid-b"

    def seen() -> None:
        bound = objects.pod("a", on="n")
        bound.spec.containers[0].CopyFrom(pod.spec.containers[0])
        bound.metadata.annotations["kemu.dev/gpu-card"] = "0"
        found.pods[pod.metadata.uid] = bound
        assert found.filter(other, node) is not None

    client.meanwhile = seen
    with pytest.raises(Conflict):
        await found.bind(pod, "n")
    assert found.filter(other, node) is not None
