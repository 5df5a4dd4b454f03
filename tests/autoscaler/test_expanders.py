"""Which group grows, and how growth is shared."""

from __future__ import annotations

import random

import pytest

from kemu.emulated.autoscaler import expanders, scale_ups, settings
from kemu.emulated.autoscaler.expanders import Option
from kemu.emulated.autoscaler.providers import NodeGroup
from kemu.emulated.autoscaler.templates import Template
from kemu.messages.k8s import core_v1_pb2


def group(name: str, price: float = 0.0, size: int = 0, most: int = 10) -> NodeGroup:
    made = NodeGroup({"name": name, "min": 0, "max": most, "price": price, "template": b""})
    made.target_size = size
    return made


def template(cpu: str, memory: str) -> Template:
    node = core_v1_pb2.Node()
    for amounts in (node.status.capacity, node.status.allocatable):
        amounts["cpu"].string, amounts["memory"].string = cpu, memory
    return Template(node, ())


def pod(cpu: str = "2", memory: str = "1Gi") -> core_v1_pb2.Pod:
    made = core_v1_pb2.Pod()
    amounts = made.spec.containers.add().resources.requests
    amounts["cpu"].string, amounts["memory"].string = cpu, memory
    return made


SMALL = Option(group("small", 1.0), template("4", "8Gi"), 2, [pod(), pod(), pod()])
LARGE = Option(group("large", 3.0), template("32", "64Gi"), 1, [pod(), pod(), pod(), pod()])


@pytest.mark.parametrize(
    ("expander", "chosen"),
    [("least-waste", "small"), ("most-pods", "large"), ("least-nodes", "large"), ("most-pods,least-waste", "large")],
)
def test_each_has_its_measure(expander: str, chosen: str) -> None:
    found = expanders.best([SMALL, LARGE], settings.Settings(expander=expander), 3, random.Random(1))
    assert found is not None
    assert found.group.name == chosen


def test_the_price_of_a_node_and_how_its_size_suits_the_cluster() -> None:
    cheap = Option(group("cheap", 1.0), template("4", "16Gi"), 1, [pod()])
    dear = Option(group("dear", 2.0), template("4", "16Gi"), 1, [pod()])
    found = expanders.best([dear, cheap], settings.Settings(expander="price"), 10, random.Random(1))
    assert found is cheap


@pytest.mark.parametrize(
    ("priorities", "chosen"),
    [
        ({"10": ["^large$"], "5": [".*"]}, {"large"}),
        ({"10": ["nothing"]}, {"small", "large"}),
        ({"1": ["l"]}, {"small", "large"}),
    ],
)
def test_priorities_are_of_names(priorities: dict[str, list[str]], chosen: set[str]) -> None:
    flags = settings.Settings(expander="priority", priorities=priorities)
    found = [expanders.best([SMALL, LARGE], flags, 3, random.Random(seed)) for seed in range(20)]
    assert {each.group.name for each in found if each is not None} == chosen


def test_of_equal_options_one_is_drawn() -> None:
    drawn = [expanders.best([SMALL, SMALL], settings.Settings(), 3, random.Random(seed)) for seed in range(3)]
    assert drawn == [SMALL] * 3


def test_growth_evens_out_the_sizes_of_groups_up_to_their_limits() -> None:
    groups = [group("a", size=5), group("b", size=1), group("c", size=2, most=3)]
    resizes = scale_ups.balanced(groups, 5)
    assert {each.group.name: each.new for each in resizes} == {"b": 5, "c": 3}
    assert str(resizes[0]) == "{b 1->5 (max: 10)}"
    assert sum(each.new - each.current for each in scale_ups.balanced(groups, 100)) == 5 + 9 + 1
