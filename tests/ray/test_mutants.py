"""Checks of quotas, rollouts and readiness see on Ray what they see in virtual time: a planted bug, nothing without.

The actors that have it live in the driver, as the bug does; all others in another process, over gRPC.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.controllers import quotas
from kemu.emulated.controllers.workloads.deployments import rollouts
from kemu.emulated.kubelet.probes import probers
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.runtime.ray.driver.clusters import RayCluster
from kemu.runtime.ray.driver.plans import DRIVER_CELL, CellPlan

NIGHTLY = pytest.mark.nightly("half a minute each; by day one of them shows that checks see what happens on Ray")


def no_quota_is_counted_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(quotas.ResourceQuotaController, "replenish", lambda self, evaluator, namespace: None)


def rollouts_take_all_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rollouts, "max_unavailable", lambda deployment: 1_000)


def probes_are_not_shown(patch: pytest.MonkeyPatch) -> None:
    show = probers._PodProbes._show

    def ready(self: probers._PodProbes, container: Any, probes: Any) -> bool:
        changed = show(self, container, probes)
        container.is_unready = False
        return changed

    patch.setattr(probers._PodProbes, "_show", ready)


def failed(name: str, runtime: str, out: Path, with_bug: tuple[str, ...]) -> set[str]:
    scenario = loader.load(catalog.shipped()[name])
    others = tuple(actor for actor in ("kubelet/*", "controller/*") if actor not in with_bug)
    cells = CellPlan("others", ("store", "apiserver/*", "scheduler/*", *others)), CellPlan(DRIVER_CELL, ("*",))
    # The faster Ray is, the more time a controller has, and where messages are slow. Of quotas, the run has a minute.
    speed = 4 if name.startswith("quotas/") else 10
    options = runner.Options(out=out, runtime=runtime, speed=speed, ray={"cells": cells} if runtime == "ray" else {})
    verdict, _ = runner.run_all(scenario, options)
    return {one["id"] for one in (*verdict["checks"], *verdict["expectations"]) if one["holds"] is False}


@pytest.mark.ray
@pytest.mark.parametrize("planted", [True, pytest.param(False, marks=NIGHTLY)], ids=["planted", "sound"])
@pytest.mark.parametrize(
    ("plant", "name", "actors", "check"),
    [
        pytest.param(
            no_quota_is_counted_again,
            "quotas/malicious-user",
            ("controller/*",),
            "quotas-count-what-exists",
            marks=NIGHTLY,
        ),
        pytest.param(
            rollouts_take_all_away,
            "rollouts/held-up-rollout",
            ("controller/*",),
            "rollouts-keep-their-limits",
            marks=NIGHTLY,
        ),
        (probes_are_not_shown, "pods/flapping-blocks-drain", ("kubelet/*",), "readiness-follows-probes"),
    ],
)
def test_a_bug_is_seen_as_in_virtual_time(
    plant: Any, name: str, actors: tuple[str, ...], check: str, planted: bool, local_ray: RayCluster, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if planted:
            plant(patch)
        in_virtual_time = failed(name, "sim", tmp_path / "sim", actors)
        on_ray = failed(name, "ray", tmp_path / "ray", actors)
    assert (check in in_virtual_time, check in on_ray) == (planted, planted)
    assert on_ray == in_virtual_time
