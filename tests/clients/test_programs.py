"""Programs with client-go, controller-runtime and the Python clients see on kemu what they see on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.clients import emulated, go_programs, python_programs, recordings

CONTENTS = ("json", "protobuf")
Outcomes = dict[tuple[str, str], Future[Any]]


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Without controllers and schedulers, and so without configmaps with its authority, as the recorded server was."""
    folder = tmp_path_factory.mktemp("up")
    with emulated.start(folder, "--without=schedulers,controllers", "--insecure-http") as cluster:
        yield cluster.kubeconfig


@pytest.fixture(scope="module")
def outcomes(kubeconfig: Path) -> Iterator[Outcomes]:
    """All programs at once: each has its namespace, and waits most of the time."""
    go_programs.executable()  # once, before several threads want it
    with ThreadPoolExecutor(4) as threads:
        yield {
            (program, content): threads.submit(
                go_programs.run, kubeconfig, program, f"-content={content}", f"-namespace={program}-{content}"
            )
            for program in go_programs.PROGRAMS
            for content in CONTENTS
        }


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("program", go_programs.PROGRAMS)
def test_a_go_program(outcomes: Outcomes, program: str, content: str) -> None:
    summary, timings = outcomes[program, content].result()
    assert summary == recordings.of(program)
    assert timings.get("sync", 0) < 3000


@pytest.fixture(scope="module")
def of_python(kubeconfig: Path) -> Iterator[dict[str, Future[Any]]]:
    with ThreadPoolExecutor(4) as threads:
        yield {name: threads.submit(python_programs.run, kubeconfig, name) for name in python_programs.PROGRAMS}


@pytest.mark.parametrize("program", python_programs.PROGRAMS)
def test_a_python_program(of_python: dict[str, Future[Any]], program: str) -> None:
    assert of_python[program].result() == recordings.of(program)


@pytest.fixture(scope="module")
def in_virtual_time(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Any]]]:
    """Operators on a cluster whose clock stands but for what their requests take."""
    options = "--virtual", "--without=schedulers,controllers"
    with emulated.start(tmp_path_factory.mktemp("virtual"), *options) as cluster, ThreadPoolExecutor(2) as threads:
        kubeconfig = cluster.kubeconfig
        yield {name: threads.submit(python_programs.run, kubeconfig, name) for name in python_programs.OPERATORS}


@pytest.mark.thorough
@pytest.mark.parametrize("program", python_programs.OPERATORS)
def test_an_operator_in_virtual_time(in_virtual_time: dict[str, Future[Any]], program: str) -> None:
    assert in_virtual_time[program].result() == recordings.of(program)


@pytest.mark.thorough
def test_terminals_with_many_watches_see_every_event(kubeconfig: Path) -> None:
    summary, timings = go_programs.run(kubeconfig, "load", "-count=100", "-seconds=2", "-rate=20")
    assert summary == {"watches": 100, "all seen by all": True, "failed": 0}
    assert timings["lists"] >= 20
