"""The worked examples hold for real, too: on Ray, over gRPC, twenty times as fast as the wall clock."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kemu.lab.scenario import catalog, scenarios
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.runtime.faults.kinds import KINDS
from kemu.runtime.ray.driver import plans
from tests.scenarios import slowness
from tests.scenarios.test_shipped import failures

CHAOS = (
    "chaos/store-crash",
    "chaos/kubelet-partition",
    "chaos/torn-write",
    "chaos/cut-watches",
    "chaos/scheduler-pause",
)
"""One for each way in which the Ray runtime carries faults out: SIGKILL of a process, what the network does, what a
disk does, what actors do themselves, SIGSTOP. Cut watches have the API server list and watch the store at the same
time, which gRPC treats otherwise than the simulation (``tests/apiserver/test_feed.py``)."""
ALL = os.environ.get("KEMU_ALL_ON_RAY") == "1"
"""Of the scenarios under chaos all that Ray can do, instead of those above; long ones, too; of a matrix all variants
instead of the last (scripts/nightly)."""
COMPARED = "seeds/preemption-eligibility"
"""The one matrix of which all variants run and are compared every time. How the variants of a matrix differ is up to
the actors, and seen in virtual time; what Ray adds to them is the same for all."""
SHORT_S = 60
"""Of the races those that last no longer run every time: longer ones mostly wait, and what their actors do is seen in
virtual time."""
OTHERS = (
    COMPARED,
    "extenders/gpu-share",
    "races/jobs-on-a-small-node",
    "races/two-gangs",
    "races/two-replicas-same-pods",
    "seeds/redis-and-web-servers",
    "seeds/taints-and-tolerations",
    "seeds/victim-choice",
)
"""They run every time, too: no short race has an extender, the Job controller, groups of pods or a leader to elect; and
of the examples of placement and preemption, whose actors send the same requests, a few."""
TOO_LARGE = ("chaos/thousand-nodes",)
DECIDED_BY_MILLISECONDS = ("races/priority-against-qos", "races/preemption-under-a-budget")
"""Who takes the room first decides whether there is a loop at all, and on Ray a restarted pod may be slower. A budget
is kept if the second preemption comes some milliseconds after the first (docs/museum/91492.md)."""


def _is_wanted(name: str, path: Path) -> bool:
    if not name.startswith("chaos/"):
        if not name.startswith(("seeds/", "races/", "extenders/")) or name in DECIDED_BY_MILLISECONDS:
            return False
        return ALL or name in OTHERS or (name.startswith("races/") and _seconds(path) <= SHORT_S)
    if not ALL:
        return name in CHAOS
    faults = loader.load(path).chaos
    return name not in TOO_LARGE and not any(KINDS[fault.what].not_on_ray for fault in faults)


def _variants(name: str) -> list[scenarios.Scenario]:
    made = [each for _, each in loader.variants(loader.load(SCENARIOS[name]))]
    return made if ALL or name == COMPARED else made[-1:]


def _seconds(path: Path) -> int:
    """As the file says, not loaded: it is asked whenever tests are collected."""
    found = re.search(r"^  duration: (\d+)(s|m)", path.read_text(), re.MULTILINE)
    return int(found[1]) * (60 if found[2] == "m" else 1) if found else 0


SCENARIOS = {name: path for name, path in catalog.shipped().items() if _is_wanted(name, path)}

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(900)]

SPEEDS = (20, 5, 2)
"""Tried in this order; :mod:`tests.scenarios.slowness` says which failures a slower speed may excuse."""
CHAOS_SPEEDS = (10, 5, 2)
"""Where much happens all the time; and a process that is killed takes a real second to come back."""


@pytest.fixture(autouse=True)
def _one_ray_for_all(local_ray: Any) -> None:
    """Each run has cells of its own; only Ray itself is shared, as it takes seconds to start."""


def _cells(name: str) -> tuple[plans.CellPlan, ...]:
    """Where no process is to race another or to crash, fewer of them start sooner."""
    return plans.DEFAULT_PLAN if name.startswith(("races/", "chaos/")) else plans.COMPACT_PLAN


@pytest.mark.parametrize("name", sorted(SCENARIOS, key=lambda name: _seconds(SCENARIOS[name]), reverse=True))
def test_holds_on_ray(name: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    made = _variants(name)
    scenario = made[0] if len(made) == 1 else loader.load(SCENARIOS[name])
    for speed in CHAOS_SPEEDS if name.startswith("chaos/") else SPEEDS:
        verdict, results = runner.run_all(
            scenario,
            runner.Options(out=tmp_path / f"{speed}", runtime="ray", speed=speed, ray={"cells": _cells(name)}),
        )
        if verdict["verdict"] == "holds":
            break
        for variant, result in zip(made, results, strict=True):
            wrong = [*slowness.faults(result.verdict, variant.expectations)]
            assert not wrong, f"at speed {speed}: {wrong}"
    record_property("speed", speed)
    assert verdict["verdict"] == "holds", failures(verdict)
