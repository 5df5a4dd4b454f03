"""Which actors share a process by default."""

from __future__ import annotations

import pytest

from kemu.runtime.ray.driver import plans
from kemu.runtime.ray.driver.plans import DRIVER_CELL, Placement

ALONE = ("store", "apiserver/0", "apiserver/1", "scheduler/a/0", "scheduler/a/1", "scheduler/b/0")
TOGETHER = ("controller/node-lifecycle", "controller/replicaset", "extender/gpu")


def test_store_api_servers_and_schedulers_share_a_process_with_nobody() -> None:
    placement = Placement()
    everybody = (*ALONE, *TOGETHER, *(f"kubelet/node-{number}" for number in range(500)), "user")
    cells = {actor: placement.place(actor)[0] for actor in everybody}
    for actor in ALONE:
        assert [other for other in everybody if cells[other] == cells[actor]] == [actor]
    assert len({cells[actor] for actor in TOGETHER}) == 1
    assert cells["user"] == DRIVER_CELL
    assert len(set(cells.values())) == len(ALONE) + 3


def test_the_compact_plan_has_three_processes() -> None:
    placement = Placement(plans.COMPACT_PLAN)
    assert {placement.place(actor)[0] for actor in (*ALONE, *TOGETHER, "kubelet/n")} == {
        "control",
        "schedulers",
        "kubelets",
    }


@pytest.mark.parametrize(
    ("cells", "lives"),
    [
        ({}, {"store": "store", "apiserver/1": "apiservers", "kubelet/n": "kubelets", "controller/x": "controllers"}),
        ({"kubelets": 2}, {"kubelet/a": "kubelets", "kubelet/b": "kubelets", "kubelet/c": "kubelets-1"}),
        ({"kubelets": "own"}, {"kubelet/a": "kubelets", "kubelet/b": "kubelets-1", "kubelet/c": "kubelets-2"}),
        ({"controllers": "own"}, {"controller/a": "controllers", "controller/b": "controllers-1", "extender/x": "extenders"}),  # noqa: E501
        ({"store": "one", "apiServers": "one"}, {"store": "one", "apiserver/0": "one", "user": DRIVER_CELL}),
        ({"schedulers": "schedulers", "extenders": "schedulers"}, {"scheduler/a/0": "schedulers", "extender/x": "schedulers"}),  # noqa: E501
    ],
)  # fmt: skip
def test_cells_are_as_the_scenario_says(cells: dict[str, plans.Share], lives: dict[str, str]) -> None:
    placement = Placement(plans.of(cells))
    assert {actor: placement.place(actor)[0] for actor in lives} == lives


@pytest.mark.parametrize(
    "cells", [{"store": "schedulers"}, {"kubelets": 0}, {"store": "Own"}, {"kubelet": 5}, {"store": DRIVER_CELL}]
)
def test_a_cell_has_one_meaning(cells: dict[str, plans.Share]) -> None:
    with pytest.raises(ValueError, match=next(iter(cells))):
        plans.of(cells)
