"""Starting and joining Ray: once more where it took too long, with what went wrong where it does not help."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kemu.errors import InfrastructureError, KemuError
from kemu.runtime.ray.broker import nodes, server
from kemu.runtime.ray.driver import clusters, infrastructure
from kemu.runtime.ray.driver.clusters import RayCluster


class Starts:
    """In place of Ray's own."""

    def __init__(self, failures: int) -> None:
        self.lean: list[bool] = []
        self._failures = failures

    def __call__(self, temporary: str, *, cpus: int, lean: bool) -> Any:
        assert os.listdir(temporary) == []
        self.lean.append(lean)
        if len(self.lean) <= self._failures:
            raise TimeoutError("the node timed out during startup")
        return self


def test_a_slow_start_is_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The last time with all of Ray's own processes."""
    starts = Starts(2)
    monkeypatch.setattr(nodes, "Node", starts)
    assert server.start_node(str(tmp_path), 2) is starts
    assert starts.lean == [True, True, False]


def test_not_for_ever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    starts = Starts(100)
    monkeypatch.setattr(nodes, "Node", starts)
    with pytest.raises(TimeoutError, match="the node timed out"):
        server.start_node(str(tmp_path), 2)
    assert len(starts.lean) == 3


@pytest.mark.parametrize(("named", "shared"), [("", True), ("10.0.0.1:6379", False), ("10.0.0.2:6379", True)])
def test_an_open_cluster_is_shared_unless_the_environment_names_another(
    monkeypatch: pytest.MonkeyPatch, named: str, shared: bool
) -> None:
    class Open:
        lost = ""
        joined = "10.0.0.2:6379"

        def call(self, method: str) -> None:
            assert method == "start"

    mine = Open()
    monkeypatch.setattr(clusters, "_shared", [mine])
    monkeypatch.setattr(RayCluster, "_connect", lambda *_: Open())
    monkeypatch.setenv("RAY_ADDRESS", named)
    cluster = RayCluster()
    assert (cluster._connection is mine, cluster.owned) == (shared, not shared)
    mine.lost = "gone"
    assert RayCluster().owned


@contextlib.contextmanager
def listener(*, accepts: bool) -> Iterator[str]:
    """Somebody who is not Ray: lets connect, and reads, or does not even that."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    held.append(server.accept()[0])

        if accepts:
            threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        for each in held:
            each.close()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1:9", "Connection refused"),
        ("nowhere.invalid:6379", "there is no host nowhere.invalid"),
        ("localhost", "write it as HOST:PORT, or auto"),
    ],
)
def test_a_wrong_address_is_told_at_once(address: str, why: str) -> None:
    begun = time.monotonic()
    with pytest.raises(KemuError, match=f"^cannot join the Ray cluster at {address}: {why}$"):
        RayCluster(address)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("accepts", [True, False])
def test_whoever_is_not_ray_does_not_hold_anybody_up(accepts: bool) -> None:
    begun = time.monotonic()
    with listener(accepts=accepts) as address, pytest.raises(KemuError, match="as Ray does"):
        RayCluster(address)
    assert time.monotonic() - begun < 5


async def test_raylets_of_a_joined_cluster_are_told() -> None:
    """One that goes, one that comes back, the second one of a machine; a new one is not news."""
    one, two, three = ({"NodeManagerAddress": address} for address in ("10.0.0.1", "10.0.0.2", "10.0.0.3"))
    answers = iter([[one, two, two], [one, two], [one, two, three], [one, two, two, three]])

    async def nodes() -> list[dict[str, str]]:
        try:
            return next(answers)
        except StopIteration:
            raise InfrastructureError("the GCS is gone") from None

    told: list[tuple[str, str]] = []
    watch = infrastructure.Infrastructure(lambda name, event: told.append((name, event.KIND)))
    await watch.watch_nodes(nodes, ask_s=0.0)
    assert told == [("raylet/10.0.0.2-2", "process.died"), ("raylet/10.0.0.2-2", "process.started")]
