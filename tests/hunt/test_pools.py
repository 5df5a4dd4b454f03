"""Trials side by side: results by name, whatever comes first; processes that die or hang; who may begin."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.errors import KemuError
from kemu.lab.exploration.processes.tasks import SLOW
from kemu.lab.exploration.workers import Inline, Workers
from kemu.lab.hunt import projects
from kemu.lab.hunt.courses import Course
from kemu.lab.hunt.perturbations import Kind, Perturbation, Plan, Point
from kemu.lab.hunt.projects import Project
from kemu.lab.hunt.running import pools, trials
from kemu.lab.hunt.running.pools import LostTrial, NotBegun, Pool, TrialRecord, TrialTask
from kemu.lab.hunt.running.trials import Outcome
from kemu.lab.up.remotes import NoAnswer
from tests.hunt import test_api

PROJECT = Project("p", Path("hunt.yaml"), (), ())


def plan(name: str) -> Plan:
    return (Perturbation(Kind.CRASH, "c", Point("ConfigMap", name, "default", 1)),)


@dataclasses.dataclass(frozen=True)
class Acting(TrialTask):
    """In the place of a trial: does what the object of its plan is called."""

    def run(self, source: Project) -> TrialRecord:
        what = self.plan[0].at.name
        assert self.folder is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        marker = self.folder.parent / f"begun-{what}"
        is_first = not marker.exists()
        marker.touch()
        if what == "deaf" or (what == "deaf-once" and is_first):
            raise NoAnswer("time does not pass")
        if what == "fails":
            raise KemuError("controller c: it has no legs")
        if what == "dies" or (what == "dies-once" and is_first):
            os.kill(os.getpid(), signal.SIGKILL)
        if what.startswith("slow"):
            time.sleep(0.3)
        return TrialRecord(self.number, 0.01, Outcome(self.folder, Course(), refused={0: what}))


@pytest.fixture(autouse=True)
def acting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "TrialTask", Acting)


def said(outcome: Outcome) -> str:
    return outcome.refused[0]


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_by_name(tmp_path: Path, jobs: int) -> None:
    pool = Pool(PROJECT, Workers(jobs) if jobs > 1 else Inline(), tmp_path)
    kept: list[str] = []

    def then(outcome: Outcome) -> str:
        kept.append(said(outcome))
        return said(outcome)

    try:
        later = [pool.ask((), plan(name), later=True, then=then) for name in ("slow-1", "b", "c")]
        first = pool.ask((), plan("first"))
        assert said(pool.result(first)) == "first"
        assert [pool.result(one) for one in later] == ["slow-1", "b", "c"]
        assert sorted(kept) == ["b", "c", "slow-1"]
        assert [said(one) for one in pool.trials((), plan("many"), 5)] == ["many"] * 5
        fails = pool.ask((), plan("fails"))
        with pytest.raises(KemuError, match="no legs"):
            pool.result(fails)
        assert said(pool.trial((), plan("after"))) == "after"
        # Folders of the latest are there, and no more.
        assert 0 < len([one for one in tmp_path.iterdir() if one.is_dir()]) <= 2 + 2 * jobs + pools.REFERENCES + 1
    finally:
        pool.close()


def test_the_time_is_over(tmp_path: Path) -> None:
    pool = Pool(PROJECT, Inline(), tmp_path)
    try:
        asked = [pool.ask((), plan(name), later=True) for name in ("a", "b")]
        pool.limit(lambda: not (tmp_path / "begun-a").exists())
        assert said(pool.result(asked[0])) == "a"
        with pytest.raises(NotBegun):
            pool.result(asked[1])
        assert said(pool.trial((), plan("urgent"))) == "urgent"  # what a finding needs goes on
    finally:
        pool.close()


def test_who_has_seen_enough_stops(tmp_path: Path) -> None:
    pool = Pool(PROJECT, Inline(), tmp_path)
    try:
        assert any(said(one) == "x" for one in pool.trials((), plan("x"), 50))
        assert said(pool.trial((), plan("y"))) == "y"
        assert pool._number < 10
    finally:
        pool.close()


def test_processes_that_die(tmp_path: Path) -> None:
    told: list[str] = []
    pool = Pool(PROJECT, Workers(2), tmp_path, on_lost=told.append)
    try:
        asked = {name: pool.ask((), plan(name)) for name in ("dies", "dies-once", "works")}
        for name in ("dies-once", "works"):
            assert said(pool.result(asked[name])) == name
        with pytest.raises(LostTrial, match="ConfigMap dies, and starts again: every process that tried it died"):
            pool.result(asked["dies"])
        assert len(told) == 1
    finally:
        pool.close()


class Hanging(Inline):
    """Its processes hang, some once and some always."""

    def run(self, source: Any, tasks: Iterable[Any], *, in_order: bool = True, needs: object = None) -> Iterator[Any]:
        tried = set[str]()
        for task in tasks:
            name = task.plan[0].at.name
            hangs = name == "hangs" or (name == "hangs-once" and name not in tried)
            tried.add(name)
            yield task.given_up(SLOW, 2.0) if hangs else task.carry_out(source)


def test_clusters_that_do_not_answer(tmp_path: Path) -> None:
    """That is the machine's fault, and no finding; the hunt goes on."""
    told: list[str] = []
    pool = Pool(PROJECT, Inline(), tmp_path, on_lost=told.append)
    assert said(pool.trial((), plan("deaf-once"))) == "deaf-once"
    with pytest.raises(LostTrial, match="its cluster has not answered"):
        pool.trial((), plan("deaf"))
    assert [text.endswith("tried again") for text in told] == [True, True, False]


def test_processes_that_hang(tmp_path: Path) -> None:
    told: list[str] = []
    pool = Pool(PROJECT, Hanging(), tmp_path, on_lost=told.append)
    assert said(pool.trial((), plan("hangs-once"))) == "hangs-once"
    with pytest.raises(LostTrial, match="ConfigMap hangs, and starts again: it took longer than 2 s"):
        pool.trial((), plan("hangs"))
    assert [text.endswith("tried again") for text in told] == [True, True, False]
    assert [said(one) for one in pool.trials((), plan("hangs"), 3)] == []


def test_fixed_ports_do_not_collide() -> None:
    """Two processes listen on one port, each in a network of its own."""
    program = """
import socket, sys
from kemu.lab.hunt.running import networks
if not networks.enter():
    sys.exit(77)
with socket.create_server(("127.0.0.1", 18080)) as server, socket.create_connection(("127.0.0.1", 18080)):
    print("listens", flush=True)
    sys.stdin.read()
"""
    command = [sys.executable, "-c", program]
    children = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [child.stdout.readline() for child in children if child.stdout is not None]
    for child in children:
        child.communicate(timeout=60)
    if any(child.returncode == 77 for child in children):
        pytest.skip("this system gives nobody a network of its own")
    assert told == ["listens\n"] * 2


def test_what_is_made_anew_waits_for_the_end_of_the_old_one(tmp_path: Path) -> None:
    """It would go with that. Nobody removes this finalizer; the user's own goes by what is applied."""
    file = test_api.project(tmp_path)
    document = yaml.safe_load(file.read_text())
    gone = {"delete": {"kind": "ConfigMap", "name": "held"}}

    def applied(value: str, *finalizers: str) -> dict[str, Any]:
        metadata = {"name": "held", "finalizers": list(finalizers)}
        return {"apply": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}}}

    def done(*steps: dict[str, Any]) -> Outcome:
        document["spec"]["steps"] = list(steps)
        file.write_text(yaml.safe_dump(document))
        project = projects.load(file)
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        return trials.Trial(project, folder, project.steps, ()).run()

    own = done(applied("1", "example.com/own"), gone, applied("2"))
    assert own.stuck == []
    assert "/registry/configmaps/default/held" not in own.objects()
    change = {"metadata": {"finalizers": ["example.com/b"]}}
    patch = {"patch": {"kind": "ConfigMap", "name": "held"}, "with": change}
    others = done(applied("1"), patch, gone, applied("2"))
    assert others.stuck == [3]
    assert others.objects()["/registry/configmaps/default/held"]["data"] == {"a": "1"}
