"""``apiServers: {bindCheck: …}`` in a scenario."""

from __future__ import annotations

import pytest

import kemu
from kemu.errors import ScenarioError

RACE = "races/two-schedulers-one-node"


@pytest.mark.parametrize(("check", "refused", "rejected"), [("none", 0, 1), ("capacity", 1, 0), ("generation", 0, 1)])
def test_who_ends_a_race(check: str, refused: int, rejected: int) -> None:
    """kube-scheduler states no generation, so only ``capacity`` refuses its bindings; else the kubelet rejects."""
    run = kemu.run(RACE, settings={"apiServers": {"bindCheck": check}})
    bindings = [one.data["message"] for one in run.events if one.kind == "api.refused" and one.data["verb"] == "bind"]
    assert len(bindings) >= refused
    assert all("insufficient cpu" in one for one in bindings)
    assert bool(bindings) == bool(refused)
    assert run.counts["admissions_rejected"] == rejected


def test_another_check_is_a_mistake() -> None:
    with pytest.raises(ScenarioError, match="bindCheck"):
        kemu.run(RACE, settings={"apiServers": {"bindCheck": "sometimes"}})
