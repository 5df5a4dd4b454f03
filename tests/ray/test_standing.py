"""A cluster that stands between runs: found by who may use it, gone without a trace when it is ended."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from kemu.errors import KemuError
from kemu.runtime.ray import frames, processes
from kemu.runtime.ray.broker.server import Connection
from kemu.runtime.ray.driver import standing
from tests.ray.world import alive, no_more_shared_memory, shared_memory, until_true

REPOSITORY = Path(__file__).parents[2]
SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: one-pod}
spec:
  duration: 20s
  nodes: [{name: a, allocatable: {cpu: "1", memory: 1Gi}}]
  workloads: [{name: p, arrivals: {every: 1s, count: 1}, pods: {spec: {containers: [{name: main}]}}}]
  expect: [{pods: {workload: p}, all: {running: {}}}]
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of another user, as it were."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return tmp_path


def kemu(*words: str) -> tuple[int, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "kemu.doors.cli.main", *words, "--json"],
        cwd=REPOSITORY,
        capture_output=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def ports(pids: list[int]) -> list[str]:
    """Addresses at which these processes listen."""
    found = []
    for pid in pids:
        process = processes.of(pid)
        connections = process.net_connections(kind="inet") if process is not None else []
        found += [each.laddr.ip for each in connections if each.status == "LISTEN"]
    return found


def cells(pid: int) -> list[Any]:
    """Those that run, of this cluster."""
    found = [each for each in processes.descendants(pid) if processes.name(each) == "ray::KemuCell"]
    return [each for each in found if processes.runs(each)]


@pytest.mark.ray
def test_runs_share_it_and_nothing_is_left(state: Path) -> None:
    memory = shared_memory()
    code, up = kemu("ray", "up", "--workers", "4")
    assert (code, up["new"]) == (0, True)
    cluster = standing.read()
    assert cluster is not None
    try:
        assert kemu("ray", "up", "--workers", "4") == (0, {**up, "new": False})
        assert kemu("ray", "up", "--workers", "7")[0] == 2, "another one than asked for is no success"

        everything = [cluster.pid, *(each.pid for each in processes.descendants(cluster.pid))]
        names = sorted(processes.name(each) for each in processes.descendants(cluster.pid))
        assert names[:1] + [name for name in names if name == "raylet"] == ["gcs_server", "raylet"]
        assert len([name for name in names if not name.startswith("ray::")]) <= 4 + 4, "and stand-ins, and workers"
        assert set(ports(everything)) <= {"127.0.0.1", "::ffff:127.0.0.1"}, "closed to other machines"

        (state / "pod.yaml").write_text(SCENARIO)
        for number in range(2):
            out = str(state / f"run-{number}")
            code, verdict = kemu("run", str(state / "pod.yaml"), "--runtime", "ray", "--speed", "20", "--out", out)
            assert (code, verdict["verdict"]) == (0, "holds")
        raylets = [each for each in processes.descendants(cluster.pid) if processes.name(each) == "raylet"]
        assert [each.pid in everything for each in raylets] == [True], "the runs started none"
        until_true(lambda: not cells(cluster.pid))  # a run leaves none behind

        code, status = kemu("ray", "status")
        assert (status["runs"], status["unfit"], status["workers"]) == (True, "", 4)
        workers = [each for each in processes.descendants(cluster.pid) if processes.name(each).startswith("ray::")]
        scores = {Path(f"/proc/{each.pid}/oom_score_adj").read_text() for each in workers}
        assert scores == {"1000\n"}, "when memory runs out, they go first"
        everything += [each.pid for each in processes.descendants(cluster.pid)]
    finally:
        ended = kemu("ray", "down")
    assert ended == (0, {"ended": True, "left": []})
    assert not [pid for pid in everything if alive(pid)]
    assert not Path(cluster.temporary).exists()
    no_more_shared_memory(memory)
    assert kemu("ray", "down") == (0, {"ended": False, "left": []})
    assert kemu("ray", "status")[1]["runs"] is False


@pytest.mark.ray
def test_one_that_died_is_not_used_and_cleared_up(state: Path) -> None:
    assert kemu("ray", "up", "--workers", "1")[0] == 0
    cluster = standing.read()
    assert cluster is not None
    everything = [cluster.pid, *(each.pid for each in processes.descendants(cluster.pid))]
    os.kill(cluster.pid, signal.SIGKILL)
    until_true(lambda: not alive(cluster.pid))
    assert standing.connect() is None
    assert kemu("ray", "status")[1]["unfit"] == "its process is gone"
    assert kemu("ray", "down") == (0, {"ended": True, "left": []})
    assert not [pid for pid in everything if alive(pid)]
    assert not Path(cluster.temporary).exists()


# Whom it serves, without Ray ------------------------------------------------------------------------------------------


@pytest.fixture
def written(state: Path) -> Iterator[standing.Standing]:
    """A file about this very process."""
    me = processes.of(os.getpid())
    assert me is not None
    made = standing.Standing(os.getpid(), me.create_time(), str(state), 3, "127.0.0.1:1", standing.what_runs())
    write(made)
    return made


def write(cluster: standing.Standing) -> None:
    file = standing.state_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(dataclasses.asdict(cluster)))


def test_a_pid_that_was_given_anew_is_not_it(written: standing.Standing) -> None:
    assert written.process is not None
    assert dataclasses.replace(written, started=written.started - 60).process is None


@pytest.mark.parametrize(
    ("key", "what"), [("python", "another Python"), ("ray", "another version of Ray"), ("kemu", "another copy of kemu")]
)
def test_one_that_runs_something_else_is_not_used(written: standing.Standing, key: str, what: str) -> None:
    other = dataclasses.replace(written, runs={**written.runs, key: "other"})
    write(other)
    assert standing.connect() is None
    assert what in standing.difference(other)
    with pytest.raises(KemuError, match=what):
        standing.up(3)


def test_nor_one_that_was_started_before_kemu_changed(written: standing.Standing) -> None:
    write(dataclasses.replace(written, runs={**written.runs, "changed": 1}))
    assert standing.connect() is None
    assert standing.status().unfit == "files of kemu have changed since it was started"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"pid": 1}', '{"future": true}'])
def test_a_file_that_says_something_else_is_none(state: Path, text: str) -> None:
    standing.state_file().parent.mkdir(parents=True)
    standing.state_file().write_text(text)
    assert standing.read() is None
    assert standing.connect() is None


def test_a_folder_that_kemu_has_not_made_is_not_removed(written: standing.Standing, state: Path) -> None:
    write(dataclasses.replace(written, pid=1 << 22))
    assert standing.down() == (True, [])
    assert state.exists()


# What a driver leaves behind when Ray is slow, without Ray ------------------------------------------------------------


@pytest.mark.parametrize("is_early", [False, True], ids=["once they run", "while they start"])
def test_a_driver_that_ends_leaves_neither_cells_nor_calls(is_early: bool) -> None:
    free = threading.Event()
    ray = MagicMock()
    ray.exceptions = SimpleNamespace(
        **dict.fromkeys(("RayTaskError", "OutOfMemoryError", "NodeDiedError", "ObjectLostError", "RayError"), OSError)
    )
    place, submit = ray.remote.return_value.options.return_value.remote, ray.remote.return_value.return_value.remote

    async def main() -> None:
        loop = asyncio.get_running_loop()
        place.side_effect = lambda name: f"cell {name}"
        submit.side_effect = lambda function, argument: loop.create_future()
        calls = ThreadPoolExecutor(1)
        broker = SimpleNamespace(lost="", goes_on=True, patience_s=None, ray=ray, calls=calls, warm=lambda: None)
        connection = Connection(broker, MagicMock())  # type: ignore[arg-type]
        reader = asyncio.StreamReader()

        def ask(*requests: tuple[object, ...]) -> None:
            for number, (method, *arguments) in enumerate(requests, 100):
                reader.feed_data(frames.packed([number, method, arguments]))

        reading = asyncio.create_task(connection.read(reader))
        if is_early:
            calls.submit(free.wait, 30)
        ask(("place", 1, {}, ["a"]), ("place", 2, {}, ["b"]), ("submit", 3, "m:f", b"", 0, False))
        ask(("submit", 4, "m:f", b"", 0, False))
        if not is_early:
            for _ in range(5):
                await asyncio.sleep(0)
            await loop.run_in_executor(calls, lambda: None)  # after them
            calls.submit(free.wait, 30)
        ask(("kill", 1), ("kill", 2))
        reader.feed_eof()
        await reading
        for _ in range(5):  # the last requests wait for their turn
            await asyncio.sleep(0)
        closing = asyncio.create_task(connection.close())
        await asyncio.sleep(0)
        free.set()
        await closing
        await loop.run_in_executor(calls, lambda: None)

    asyncio.run(main())
    placed = {f"cell {call.args[0]}" for call in place.call_args_list}
    assert is_early or (len(placed), submit.call_count) == (2, 2)
    assert {call.args[0] for call in ray.kill.call_args_list} == placed
    assert len({id(call.args[0]) for call in ray.cancel.call_args_list}) == submit.call_count
