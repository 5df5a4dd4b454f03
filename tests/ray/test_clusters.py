"""Starting Ray: once more where it took too long, with what went wrong where it does not help."""

from __future__ import annotations

from typing import Any

import pytest
import ray

from kemu.errors import SimulationError
from kemu.runtime.ray.driver.clusters import RayCluster


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The addresses that were tried. No Ray is started."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    return []


def failing(monkeypatch: pytest.MonkeyPatch, starts: list[str | None], failures: int) -> None:
    def connect(self: RayCluster, module: Any, address: str | None, workers: int) -> None:
        starts.append(address)
        if len(starts) <= failures:
            raise TimeoutError("the node timed out during startup")

    monkeypatch.setattr(RayCluster, "_connect", connect)


def test_a_slow_start_is_tried_again(monkeypatch: pytest.MonkeyPatch, starts: list[str | None]) -> None:
    failing(monkeypatch, starts, 2)
    with RayCluster() as cluster:
        assert cluster.owned
    assert starts == [None] * 3


def test_not_for_ever(monkeypatch: pytest.MonkeyPatch, starts: list[str | None]) -> None:
    failing(monkeypatch, starts, 100)
    with pytest.raises(SimulationError, match="cannot start Ray: the node timed out"):
        RayCluster()
    assert len(starts) == 3


def test_a_cluster_that_does_not_answer_is_not_there(monkeypatch: pytest.MonkeyPatch, starts: list[str | None]) -> None:
    failing(monkeypatch, starts, 100)
    with pytest.raises(SimulationError, match=r"cannot join the Ray cluster at 127\.0\.0\.1:9: the node"):
        RayCluster("127.0.0.1:9")
    assert starts == ["127.0.0.1:9"]
