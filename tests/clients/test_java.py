"""Programs with fabric8's client and the official one of Java see on kemu what they see on a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.clients import emulated, java_programs, recordings
from tests.realkube import binaries

pytestmark = pytest.mark.nightly("a minute of Java")
TIMES = ("real", "virtual")
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "sh"},
    "spec": {"containers": [{"name": "c", "image": "busybox", "command": ["sh", "-c", "echo up; sleep 1000"]}]},
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], Future[Any]]]:
    """All programs at once, in real and in virtual time."""
    java_programs.built()
    options = "--without=schedulers,controllers"
    folder = tmp_path_factory.mktemp("up")
    with (
        emulated.start(folder / "real", options) as real,
        emulated.start(folder / "virtual", options, "--virtual") as virtual,
        ThreadPoolExecutor(4) as threads,
    ):
        configs: dict[str, Path] = {"real": real.kubeconfig, "virtual": virtual.kubeconfig}
        yield {
            (program, time): threads.submit(java_programs.run, configs[time], program)
            for time in TIMES
            for program in java_programs.PROGRAMS
        }


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("program", java_programs.PROGRAMS)
def test_a_java_program(outcomes: dict[tuple[str, str], Future[Any]], program: str, time: str) -> None:
    assert outcomes[program, time].result() == recordings.of(program.lower())


def test_sessions_with_a_container(tmp_path: Path) -> None:
    """A real API server without kubelets has no such thing: the answers are those that the commands give."""
    java_programs.built()
    binaries.require("kubectl")
    with emulated.start(tmp_path, "--nodes=1") as cluster:
        cluster.kubectl("create", "-f", "-", stdin=json.dumps(POD))
        assert java_programs.run(cluster.kubeconfig, "Containers", "default", "sh")["steps"] == [
            ["exec", [3, "out\n", "err\n"]],
            ["log", "up\n"],
        ]
