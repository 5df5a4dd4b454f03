"""A trial that goes on from a snapshot of its cluster is the one that begins from the start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kemu.lab.scenario.playing.replaying import replays
from kemu.lab.up.virtual import replays as with_clients
from kemu.runtime import threads
from tests.hunt.test_api import project

PROGRAM = """
import json, sys
from pathlib import Path
from kemu.lab.hunt import projects
from kemu.lab.hunt.running import snapshots, trials
from kemu.lab.up.virtual import sessions

out, bug = Path(sys.argv[1]), sys.argv[2]
real = sessions.Session.set_up
if bug == "nobody":  # it is set up without what every cluster has
    def set_up(self):
        self.credentials = self._make_credentials()
        self.world.loop.go(lambda next_ns: next_ns is not None and not self.world.stands)
        return True
    sessions.Session.set_up = set_up
if bug == "late":  # time has passed before the trial begins
    def set_up(self):
        found, until_ns = real(self), self.world.loop_ns(5 * 10**9)
        self.world.loop.go(lambda next_ns: next_ns is not None and next_ns < until_ns)
        return found
    sessions.Session.set_up = set_up
if bug == "waits":
    sessions.Session.set_up = lambda self: False
if bug == "dies":
    snapshots._Standing._begin = lambda self, *request: 1 / 0

project = projects.load(out / "hunt.yaml")
told = []
for name in ("first", "second", "third"):
    if name == "third":
        (out / "more.yaml").write_text((out / "more.yaml").read_text().replace("early", "renamed"))
    folder = out / name
    folder.mkdir()
    found = snapshots.outcome(project, folder, project.steps, ())
    told.append([found.begun_ns, len(found.course.changes), bool(snapshots._templates), sorted(found.objects())])
folder = out / "start"
folder.mkdir()
found = trials.Trial(project, folder, project.steps, ()).run()
told.append([found.begun_ns, len(found.course.changes), False, sorted(found.objects())])
snapshots.close()
print(json.dumps(told))
"""


def made(folder: Path, bug: str = "none") -> list[list[Any]]:
    """Of three trials and one from the start: when its first step began, how many changes there were, whether there was
    a template, and what the cluster held."""
    file = project(folder)
    early = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "early"}}'
    (folder / "more.yaml").write_text(early)
    file.write_text(file.read_text().replace("nodes: 1", "nodes: 1\n    manifests: [more.yaml]"))
    command = [sys.executable, "-c", PROGRAM, str(folder), bug]
    env = {**os.environ, **threads.ONE}  # a process with threads does not fork
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found: list[list[Any]] = json.loads(done.stdout)
    return found


def differences(folder: Path) -> list[object]:
    """From a run that begins from the start and is told the same by its clients."""
    return [replays.replay(folder / name, None, with_clients.setting)[0].difference for name in ("first", "second")]


@pytest.mark.slow
def test_a_trial_by_a_snapshot_is_the_one_from_the_start(tmp_path: Path) -> None:
    *by_snapshot, start = made(tmp_path)
    assert differences(tmp_path) == [None, None]
    assert [one[2] for one in by_snapshot] == [True] * 3
    assert {one[0] for one in by_snapshot} == {start[0]}
    assert [one[3] == start[3] for one in by_snapshot] == [False, False, True]  # a manifest has changed
    names = "/registry/configmaps/default/early", "/registry/configmaps/default/renamed"
    assert [[name in one[3] for name in names] for one in by_snapshot[1:]] == [[True, False], [False, True]]


@pytest.mark.thorough
@pytest.mark.slow
def test_another_set_up_shows(tmp_path: Path) -> None:
    """The check of the test above can fail."""
    for bug in ("nobody", "late"):
        folder = tmp_path / bug
        folder.mkdir()
        *by_snapshot, start = made(folder, bug)
        assert None not in differences(folder) or by_snapshot[0][0] != start[0], bug


@pytest.mark.slow
@pytest.mark.parametrize("bug", ["waits", "dies"])
def test_without_a_snapshot(tmp_path: Path, bug: str) -> None:
    """A set-up that waits for something outside, a process that dies: the trials begin from the start."""
    *by_snapshot, start = made(tmp_path, bug)
    assert [one[2] for one in by_snapshot] == [False] * 3
    assert differences(tmp_path) == [None, None]
    assert by_snapshot[2][3] == start[3]
