"""How the clock of a cluster goes whose clients are loud, slow, or behind; and at which date."""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kubernetes
import pytest
import urllib3

from kemu.errors import KemuError
from kemu.lab.scenario.playing.replaying import replays
from kemu.lab.up import embedded
from kemu.lab.up.virtual import drivers
from kemu.lab.up.virtual.replays import setting


def _client(cluster: embedded.Cluster, agent: str) -> Any:
    found = kubernetes.config.new_client_from_config(str(cluster.kubeconfig))
    found.user_agent = agent
    return kubernetes.client.CoreV1Api(found)


@contextmanager
def _looping(cluster: embedded.Cluster, agent: str) -> Iterator[None]:
    """A client that writes again and again."""
    core, stop = _client(cluster, agent), threading.Event()
    core.create_namespaced_config_map("default", {"metadata": {"name": "loud"}})

    def loop() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            core.patch_namespaced_config_map("loud", "default", {"data": {"n": str(number)}})

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _watch(listing: Any, take: Callable[[Any], bool]) -> threading.Thread:
    """A client that watches until ``take`` returns True, or the cluster ends."""

    def watch() -> None:
        with contextlib.suppress(urllib3.exceptions.HTTPError):
            for event in kubernetes.watch.Watch().stream(listing, "default", timeout_seconds=3600):
                if take(event["object"]):
                    return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def test_a_client_that_writes_in_a_loop_does_not_stop_time_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drivers, "RESTLESS_S", 0.5)
    monkeypatch.setattr(drivers, "RESTLESS_TIMES", 1)
    settled = embedded.up(nodes=1, folder=tmp_path / "run", settle_s=0.5)
    with settled as cluster, _looping(cluster, "loud/v1 (linux)"):
        for _ in range(3):
            begun, begun_s = time.monotonic(), cluster.now_s
            found = cluster._remote.step({"seconds": 600})
            assert cluster.now_s - begun_s >= 600
            assert time.monotonic() - begun < 30
            if found["restless"]:
                break  # on a busy machine it may not have been loud at first
    assert found["hurried"] >= 1
    (told,) = found["restless"]
    assert told.startswith("loud/v1 has made ")
    assert told.endswith("the last one patch configmaps default/loud")


def test_others_are_waited_for_while_one_is_loud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "RESTLESS_S", 0.5)
    with (
        embedded.up(nodes=1, folder=tmp_path / "run", settle_s=0.1) as cluster,
        _looping(cluster, "loud/v1"),
    ):
        cluster.step(1)  # the loud one is known
        seen: list[float] = []

        def take(pod: Any) -> bool:
            if pod.status.phase == "Running":
                seen.append(cluster.now_s)
            return bool(seen)

        thread = _watch(_client(cluster, "controller/v1").list_namespaced_pod, take)
        _client(cluster, "user/v1").create_namespaced_pod(
            "default", {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "a"}]}}
        )
        cluster.step(until="pod/a running", seen_by="controller/*")
        thread.join(10)
        # It heard of that at its time, not when the step was over.
        assert seen
        assert seen[0] <= cluster.now_s + 0.5


def test_a_step_that_takes_too_long_says_who_keeps_it(tmp_path: Path) -> None:
    with embedded.up(nodes=1, folder=tmp_path / "run") as cluster, _looping(cluster, "loud/v1"):
        with pytest.raises(KemuError) as caught:
            cluster.step(3600, real_s=1)
        assert "in 1 s of real time" in str(caught.value)
        assert "loud/v1 has made " in str(caught.value)
        assert "patch configmaps default/loud" in str(caught.value)
        # Time stands where it is, and can be stepped again.
        now_s = cluster.now_s
        assert now_s < 3600


def test_a_condition_waits_for_the_watch_of_a_client(tmp_path: Path) -> None:
    with embedded.up(nodes=1, folder=tmp_path / "run") as cluster:
        core = _client(cluster, "controller/v2 (linux)")
        # Events reach this client 30 s late.
        cluster.chaos({"delayEvents": {"by": "30s", "agent": "controller/*"}})
        got: list[str] = []
        _watch(core.list_namespaced_config_map, lambda found: bool(got.append(found.metadata.name)))  # type: ignore[func-returns-value]
        user = _client(cluster, "user/v1")
        user.create_namespaced_config_map("default", {"metadata": {"name": "mine"}})
        begun_s = cluster.now_s
        assert cluster.step(until="configmap/mine exists")
        assert cluster.now_s - begun_s < 1
        assert "mine" not in got
        assert cluster.step(until="configmap/mine exists", seen_by="controller/*")
        assert 29 < cluster.now_s - begun_s < 120
        user.delete_namespaced_config_map("mine", "default")
        assert cluster.step(until="configmap/mine gone", seen_by="controller/*")
        cluster.chaos({"delayEvents": {"by": "1h", "agent": "controller/*"}})
        user.create_namespaced_config_map("default", {"metadata": {"name": "late"}})
        with pytest.raises(AssertionError, match=r"configmap/late exists as controller/\* has seen it does not hold"):
            cluster.step(5, until="configmap/late exists", seen_by="controller/*")
        # Before somebody watches, no time passes.
        now_s = cluster.now_s
        with pytest.raises(KemuError, match="the cluster waits for a watch of configmaps by nobody"):
            cluster.step(5, until="configmap/late exists", seen_by="nobody", real_s=0.5)
        assert cluster.now_s - now_s < 1


def test_time_begins_at_the_date_that_is_stated_also_when_it_is_replayed(tmp_path: Path) -> None:
    date = dt.datetime(2026, 11, 28, 9, tzinfo=dt.UTC)
    with embedded.up(nodes=1, folder=tmp_path / "run", date=date) as cluster:
        core = _client(cluster, "user/v1")
        made = core.create_namespaced_config_map("default", {"metadata": {"name": "a"}})
        assert date <= made.metadata.creation_timestamp < date + dt.timedelta(seconds=30)
        cluster.step(3600)
        assert cluster._remote.call("GET", "clock")["date"].startswith("2026-11-28T10:0")
    (found,) = replays.replay(tmp_path / "run", setting=setting)
    assert found.difference is None


def test_time_begins_now_unless_a_date_is_stated(tmp_path: Path) -> None:
    before = dt.datetime.now(dt.UTC).replace(microsecond=0)
    with embedded.up(nodes=1, folder=tmp_path / "run") as cluster:
        made = _client(cluster, "user/v1").create_namespaced_config_map("default", {"metadata": {"name": "a"}})
    assert before <= made.metadata.creation_timestamp < before + dt.timedelta(minutes=5)
