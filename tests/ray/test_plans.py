"""Which actors share a process by default."""

from __future__ import annotations

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
