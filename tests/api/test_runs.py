"""kemu.run: from whatever a program has to a run that answers questions."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kemu
from kemu.doors.cli.main import main
from kemu.errors import KemuError, RunLogError, ScenarioError, UserCodeFailed
from kemu.lab.scenario import catalog
from kemu.lab.scenario.playing.replaying import replays

RACE = "races/two-schedulers-one-node"
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "m"}]}}
SPEC: dict[str, Any] = {
    "nodes": [{"name": "node-1"}],
    "events": [{"at": "5s", "create": POD}],
    "expect": [{"id": "it-runs", "pod": "a", "running": {"before": "10s"}}],
}


def test_importing_kemu_imports_nothing_of_it() -> None:
    script = "import sys, kemu; print([name for name in sys.modules if name.startswith(('kemu.', 'numpy', 'google'))])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert found == "['kemu._moved']\n"  # where earlier names lead


def test_every_name_of_the_package_is_there_and_typed() -> None:
    stub = (Path(kemu.__file__).parent / "__init__.pyi").read_text()
    for name in kemu.__all__:
        assert getattr(kemu, name).__doc__
        assert f"import {name} as {name}\n" in stub
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        kemu.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_it_is_the_run_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", RACE, "--seed", "7", "--json", "--out", str(tmp_path)])
    printed = json.loads(capsys.readouterr().out)
    run = kemu.run(RACE, seed=7)
    assert run.digest == printed["digest"]
    assert json.loads(json.dumps(run.data)) == {key: printed[key] for key in printed if key not in ("run", "wall_s")}
    assert run.folder is None


@pytest.mark.parametrize("how", ["name", "last part", "path", "text", "document"])
def test_every_form_of_a_scenario_gives_the_same_run(how: str) -> None:
    import yaml

    path = catalog.find(RACE)
    source: Any = {
        "name": RACE,
        "last part": RACE.partition("/")[2],
        "path": path,
        "text": path.read_text(),
        "document": yaml.safe_load(path.read_text()),
    }[how]
    assert kemu.run(source).digest == kemu.run(str(path)).digest


def test_a_spec_alone_is_enough() -> None:
    run = kemu.run(SPEC)
    assert (run.verdict, run.holds, run.seed) == ("holds", True, 0)
    assert run.expectations["it-runs"].detail.startswith("running on node-1 at 5.01")


def test_what_became_of_the_pods() -> None:
    run = kemu.run(RACE)
    red, blue = run.pods["red-pod"], run.pods["blue-pod"]
    assert {red.rejected, blue.rejected} == {"", "OutOfcpu"}
    winner = blue if red.rejected else red
    assert (winner.running, winner.phase, winner.node, winner.requests) == (True, "Running", "node-1", {"cpu": 3000})
    assert winner.bound_by == f"{winner.name.partition('-')[0]}/0"
    assert winner.bound_s is not None
    assert winner.running_s is not None
    assert winner.created_s < winner.bound_s < winner.running_s
    assert winner.waited_s == pytest.approx(winner.bound_s - winner.created_s)
    assert [moment.what for moment in winner.moments][:3] == ["created", "attempted", "bound"]
    assert not winner.happened("rejected")
    assert {wait.pod: wait.seconds for wait in run.waits} == {pod.name: pod.waited_s for pod in (red, blue)}


def test_the_story_and_what_the_command_line_prints() -> None:
    run = kemu.run(RACE)
    assert "is rejected: OutOfcpu" in run.story()
    assert len(run.story(limit=3).splitlines()) <= 4
    assert "two-schedulers-one-node holds" in str(run)


def test_failures_are_what_makes_the_verdict_fail() -> None:
    run = kemu.run({**SPEC, "expect": [{"id": "two", "counter": "pods_bound", "equals": 2}]})
    assert (run.verdict, run.holds) == ("fails", False)
    assert [finding.id for finding in run.failures] == ["two"]
    expected = kemu.run("starvation/big-pod-among-small-ones")
    assert expected.holds
    assert not expected.failures, "a check that is expected not to hold is no failure"


def test_settings_and_seed_override_what_the_scenario_says() -> None:
    run = kemu.run(RACE, seed=3, settings={"schedulers[1].replicas": 2})
    assert run.seed == 3
    assert any(event.actor == "scheduler/blue/1" for event in run.events)


def test_a_matrix_is_several_runs() -> None:
    run = kemu.run("seeds/preemption-eligibility")
    assert [set(each.variant) for each in run.variants] == [set(run.variants[0].variant)] * len(run.variants)
    assert len({each.digest for each in run.variants}) == len(run.variants) > 1
    assert run.holds
    assert any(found.id for found in run.expectations.values())
    with pytest.raises(ValueError, match=r"each of run\.variants has its own history"):
        _ = run.pods


def test_a_run_folder_only_where_one_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kemu.run(SPEC)
    assert not list(tmp_path.iterdir())
    run = kemu.run(SPEC, out="run")
    assert run.folder == Path("run")
    assert [each.difference for each in replays.replay(tmp_path / "run")] == [None]
    assert run.digest == kemu.run(SPEC).digest
    assert [event.kind for event in run.events] == [event.kind for event in kemu.run(SPEC).events]


def test_mistakes_are_told_all_at_once() -> None:
    with pytest.raises(ScenarioError) as caught:
        kemu.run({"nodez": [], "expect": [{"pod": "nobody", "bound": {}}]})
    assert len(caught.value.problems) >= 2
    with pytest.raises(KemuError, match="no such file, and no shipped scenario"):
        kemu.run("races/no-such-race")
    with pytest.raises(ValueError, match="runtime must be sim, wall, ray or real"):
        kemu.run(SPEC, runtime="sims")


def test_what_user_code_raises_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_scheduler.py").write_text(
        "class Broken:\n    def __init__(self, env, config):\n        self.env = env\n\n"
        "    async def run(self):\n        self.env.ready()\n        raise KeyError('nothing')\n"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserCodeFailed, match="KeyError: 'nothing'") as caught:
        kemu.run({"nodes": [{"name": "n"}], "schedulers": [{"name": "mine", "factory": "broken_scheduler:Broken"}]})
    assert (Path(caught.value.file).name, caught.value.line) == ("broken_scheduler.py", 7)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
def test_on_ray(tmp_path: Path) -> None:
    run = kemu.run(SPEC, runtime="ray", speed=10)
    assert run.holds
    assert (run.folder, run.pods["a"].running) == (None, True)
    assert any(event.kind == "kubelet.admit" for event in run.events)


def test_what_fails_says_how_to_run_it_again() -> None:
    failing = kemu.run(RACE, seed=5, settings={"expect": [{"counter": "admissions_rejected", "equals": 0}]})
    with pytest.raises(kemu.RunFailed) as raised:
        failing.check()
    last = str(raised.value).splitlines()[-1]
    assert last == (
        "again: kemu run races/two-schedulers-one-node --seed 5 "
        """--set 'expect=[{"counter": "admissions_rejected", "equals": 0}]'"""
    )
    assert len(str(raised.value).splitlines()) <= 40
    from_text = kemu.run({"nodes": [{"name": "node-1"}], "expect": [{"counter": "pods_bound", "equals": 1}]}, seed=3)
    with pytest.raises(kemu.RunFailed, match=r"\nagain: kemu\.run\(…, seed=3\)$"):
        from_text.check()


def test_that_command_fails_in_the_same_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failing = kemu.run(RACE, seed=5, settings={"expect": [{"counter": "admissions_rejected", "equals": 0}]})
    words = shlex.split(failing.again)
    assert words[0] == "kemu"
    assert main([*words[1:], "--json", "--out", str(tmp_path / "run")]) == 1
    assert json.loads(capsys.readouterr().out)["digest"] == failing.digest


def test_a_program_in_virtual_time_says_so_too() -> None:
    async def lost() -> None:
        async with kemu.cluster(nodes=1) as cluster:
            assert cluster.counts["pods_bound"] == 1

    with pytest.raises(AssertionError) as raised:
        kemu.simulate(lost, seed=4)
    assert raised.value.__notes__[-1] == "again: kemu.simulate(lost, seed=4)"


def test_events_of_a_folder_or_a_file_given_as_text_or_path(tmp_path: Path) -> None:
    run = kemu.run(RACE, out=tmp_path / "run")
    assert list(kemu.events(str(run.folder))) == list(kemu.events(tmp_path / "run" / "run.kemu")) == list(run.events)
    bound = list(kemu.events(tmp_path / "run", "sched.bind"))
    assert [event.kind for event in bound] == ["sched.bind"] * 2
    assert {event.data["pod"] for event in bound} == {"default/red-pod", "default/blue-pod"}
    with pytest.raises(RunLogError, match="none"):
        next(kemu.events(str(tmp_path / "none")))
