"""What a pod costs, counted: it must not grow unnoticed."""

from __future__ import annotations

import pytest

from kemu.emulated.objects.wire import shared_objects
from kemu.lab.bench.clusters import counts
from kemu.lab.bench.gateways import counts as up_counts

LIMITS = {
    "functions": 982,
    "checks": 162,
    "parses": 32,
    "serialisations": 34,
    "futures": 20,
    "tasks": 4,
    "steps": 102,
    "messages": 28,
    "calls": 4.1,
    "transactions": 4.1,
    "frames": 24,
}
"""Of pods that come one by one."""


def test_a_pod_takes_no_more_than_it_did_and_less_in_a_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_objects.OBJECTS, "checks", False)  # they serialise
    apart = counts.work("apart", nodes=3, pods=40)
    assert set(apart) == set(LIMITS)
    assert {figure: count for figure, count in apart.items() if count > LIMITS[figure]} == {}
    assert apart["transactions"] >= 3.9, "created, bound, and two statuses"
    burst = counts.work("burst", nodes=3, pods=40)
    assert all(burst[figure] < apart[figure] for figure in ("parses", "serialisations", "messages", "futures"))


UP_LIMITS = {"functions": 2_920, "parses": 60, "serialisations": 100, "futures": 46, "tasks": 13, "transactions": 8.3}


def test_a_pod_whose_clients_make_and_bind_it_takes_no_more_than_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_objects.OBJECTS, "checks", False)  # they serialise
    found = up_counts.work(controllers=False, nodes=3, pods=40)
    assert {figure: found[figure] for figure, limit in UP_LIMITS.items() if found[figure] > limit} == {}
    assert found["transactions"] >= 8, "created, bound, two statuses, four events"
