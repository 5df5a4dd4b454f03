"""Fields of configurations that kemu does not simulate: refused by name, at their places, all at once."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.objects.fields.sorts import Acts, Refused
from tests.scenario.texts import problems

REFUSED = {name: sort for name, sort in kubelet_configurations.SORTS.items() if isinstance(sort, Refused)}


def complaints(kubelet: dict[str, Any]) -> list[tuple[str, str]]:
    nodes = (
        f"  nodes: [{{name: n, kubelet: {yaml.safe_dump(kubelet, default_flow_style=True, width=10**6).strip()}}}]\n"
    )
    return [(one.path, one.message) for one in problems("", nodes=nodes)]


def test_every_field_of_a_kubelet_configuration_is_sorted() -> None:
    assert sorted(kubelet_configurations.SHAPE.record.keys) == sorted(kubelet_configurations.SORTS)


def test_a_field_that_acts_has_a_shape_of_its_own() -> None:
    """Not one of those that the table makes, which read nothing."""
    for name, sort in kubelet_configurations.SORTS.items():
        made = type(kubelet_configurations.SHAPE.record.keys[name].shape).__name__ in ("_Unsimulated", "Free")
        assert made is not isinstance(sort, Acts), name


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_field_of_a_kubelet_is_named(name: str) -> None:
    sort = REFUSED[name]
    assert complaints({name: "something"}) == [
        (f"spec.nodes[0].kubelet.{name}", f"kemu does not simulate this field: {sort.why}")
    ]
    for value in (None, *sort.unless):
        assert complaints({name: value}) == []


def test_no_node_stays_unregistered() -> None:
    """``false`` is what makes the difference here."""
    assert [path for path, _ in complaints({"registerNode": False})] == ["spec.nodes[0].kubelet.registerNode"]


def test_refused_fields_of_both_configurations_are_named_at_once() -> None:
    found = problems(
        """
        schedulers:
          - name: default-scheduler
            config:
              extenders: [{urlPrefix: "kemu://extender/a", tlsConfig: {insecure: true}}]
        """,
        nodes="  nodes: [{name: n, kubelet: {memorySwap: {swapBehavior: LimitedSwap}, podPidsLimit: 10}}]\n",
    )
    assert [(one.line, one.column, one.path) for one in found] == [
        (4, 31, "spec.nodes[0].kubelet.memorySwap"),
        (4, 72, "spec.nodes[0].kubelet.podPidsLimit"),
        (9, 33, "spec.schedulers[0].config.extenders[0].urlPrefix"),
        (9, 54, "spec.schedulers[0].config.extenders[0].tlsConfig"),
    ]


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("elect", ["true", "false"])
def test_replicas_may_elect_a_leader_or_race(replicas: int, elect: str) -> None:
    config = f"{{leaderElection: {{leaderElect: {elect}}}}}"
    assert not problems(f"schedulers: [{{name: default-scheduler, replicas: {replicas}, config: {config}}}]")
