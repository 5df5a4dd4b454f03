"""Where there is room for whom: nominations to many nodes make many classes, and cost no more than one."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

import pytest

from kemu.emulated.objects.amounts import requests
from kemu.lab.checks.scheduling.rooms import Class, Family, Node, Room, Rooms
from kemu.messages.k8s import core_v1_pb2

NODES = [f"node-{number}" for number in range(6)]
SIZES = (1, 2, 3)


class _Recorded(Rooms):
    """Rooms with a list of what was closed; counts how often it asks whether a node has room."""

    def __init__(self) -> None:
        self.closed: list[tuple[tuple[str, ...], Room]] = []
        self.asked = 0
        super().__init__(lambda one, room: self.closed.append((tuple(one.pods), room)))

    def _fits(self, node: Node, family: Family, *, own: bool = False) -> bool:
        self.asked += 1
        return super()._fits(node, family, own=own)

    def open(self) -> Mapping[str, Iterable[Room]]:
        return {uid: list(one.rooms.values()) for uid, one in self.class_of.items()}


class _OneByOne(_Recorded):
    """Asks about each class that waits, in the order in which they began to."""

    def _recheck(self, time_ns: int, node: Node, *, frees: bool, only: str = "", most: int | None = None) -> None:
        if frees and not only and most is None:
            self._freed.append((node.pods_revision, node.nodes_revision, node.name))
        waiting: list[Class] = [one for family in self._families.values() for one in family.waiting.values()]
        for one in sorted(waiting, key=lambda one: one.turn):
            room = one.rooms.get(node.name)
            fits = self._fits(node, one.family, own=one.nominated == node.name)
            if room is not None and not fits:
                self._closing(one, room)
                self._close(one, node.name)
            elif room is None and fits and frees and (most is None or one.spec.priority <= most):
                self._open(one, Room(node.name, time_ns, node.pods_revision, node.nodes_revision, only))


def _node(name: str) -> bytes:
    node = core_v1_pb2.Node()
    node.metadata.name = name
    for resource, amount in (("cpu", "4"), ("pods", "110")):
        node.status.allocatable[resource].string = amount
    return node.SerializeToString()


def _pod(size: int, nominated: str, priority: int) -> tuple[core_v1_pb2.Pod, dict[str, int]]:
    pod = core_v1_pb2.Pod()
    pod.spec.containers.add().resources.requests["cpu"].string = str(size)
    pod.spec.priority, pod.status.nominatedNodeName = priority, nominated
    return pod, {**requests.pod_requests(pod), "pods": 1}


def _played(rooms: _Recorded, seed: int, steps: int) -> list[Mapping[str, Iterable[Room]]]:
    rng = random.Random(seed)
    for revision, name in enumerate(NODES):
        rooms.node_changed(0, revision, name, _node(name))
    seen = []
    for step in range(steps):
        uid, size, node = f"uid-{rng.randrange(30)}", rng.choice(SIZES), rng.choice(NODES)
        pod, wanted = _pod(size, rng.choice(["", *NODES]), rng.randrange(2))
        choice, most = rng.randrange(6), rng.choice((None, 0))
        if choice == 0:
            rooms.no_longer(uid)
        elif choice == 1:
            rooms.node_changed(step, step, node, rng.choice((None, _node(node))))
        elif choice == 2:
            rooms.give_back(step, uid, rooms.where.get(uid, ""), "red")
        elif choice == 3:
            rooms.wait(step, uid, pod, wanted, (step - rng.randrange(20), step))
        else:
            rooms.put(step, step, uid, rng.choice(("", node)), wanted, most)
        seen.append(rooms.open())
    return seen


@pytest.mark.parametrize("seed", range(8))
def test_the_same_as_one_by_one(seed: int) -> None:
    quick, plain = _Recorded(), _OneByOne()
    assert _played(quick, seed, 400) == _played(plain, seed, 400)
    assert quick.closed == plain.closed
    assert quick.closed


def test_nominations_to_hundreds_of_nodes_cost_no_more_than_to_ten() -> None:
    """The mass preemption of the largest cluster has 39,000 of them."""
    asked = {}
    for nodes in (10, 300):
        rooms = _Recorded()
        for number in range(nodes):
            name = f"node-{number}"
            rooms.node_changed(0, number, name, _node(name))
            pod, wanted = _pod(3, name, 1)
            rooms.put(0, number, f"old-{number}", name, wanted)
            rooms.wait(1, f"new-{number}", pod, wanted, (number, number))
        before = rooms.asked
        for number in range(nodes):
            rooms.put(2, nodes + number, f"old-{number}", "", {})
        asked[nodes] = (rooms.asked - before) / nodes
        assert all(rooms.open().values())
    assert asked[300] == asked[10]
