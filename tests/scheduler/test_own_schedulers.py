"""Schedulers of the user's own: the example, where their code is found, and what happens when it is wrong or raises."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli.main import main
from kemu.errors import ScenarioError, UserCodeFailed
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.scenario.playing.replaying import replays

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "schedulers"
SCENARIO = EXAMPLE / "first-fit.yaml"

SPEC = """\
apiVersion: kemu.dev/v1
kind: Scenario
spec:
  duration: 30s
  nodes: [{name: node-1}]
  schedulers: [{name: mine, factory: "FACTORY", config: {when: 3}}]
  events:
    - at: 5s
      create:
        {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {schedulerName: mine, containers: [{name: m}]}}
  expect:
    - {pod: a, bound: {node: node-1, by: mine}}
"""

ACTOR = """\
from kemu.emulated.client import clients


class Direct:
    def __init__(self, env, config):
        self.env = env
        self.config = config
        self.client = clients.Client(env, config["apiserver"])

    async def run(self):
        self.env.ready()
        await self.env.clock.sleep(6)
        await self.place("a")

    async def place(self, name):
        pod = await self.client.get("pods", name, "default")
        await self.client.bind("default", name, pod.metadata.uid, "node-1")
"""


@pytest.fixture(autouse=True)
def _own_modules() -> Iterator[None]:
    """Each test finds its own modules, in its own folder."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith(("first_fit", "mine")):
            del sys.modules[name]


def write(folder: Path, actor: str = ACTOR, factory: str = "mine:Direct") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(actor)
    (folder / "own.yaml").write_text(SPEC.replace("FACTORY", factory))
    return folder / "own.yaml"


def run(path: Path, out: Path, **overrides: Any) -> Mapping[str, Any]:
    return runner.run(loader.load(path, overrides=overrides), runner.Options(out=out, runtime="sim")).verdict


def judged(verdict: Mapping[str, Any]) -> dict[str, bool | None]:
    return {found["id"]: found["holds"] for found in (*verdict["expectations"], *verdict["checks"])}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_example_holds(seed: int, tmp_path: Path) -> None:
    verdict = run(SCENARIO, tmp_path, seed=seed)
    assert verdict["verdict"] == "holds", judged(verdict)
    assert verdict["counts"]["write_conflicts"] > 0


def test_it_is_the_transaction_that_keeps_the_room_from_being_given_away_twice(tmp_path: Path) -> None:
    verdict = run(SCENARIO, tmp_path, **{"schedulers[0].config.transactions": False})
    assert judged(verdict)["room-is-given-away-once"] is False
    assert verdict["refused"].keys() == {"bind pods: Conflict"}


def test_a_replica_that_crashes_between_transaction_and_binding_blocks_no_room(tmp_path: Path) -> None:
    crash = {"at": "1500ms", "for": "5s", "crash": {"actor": "scheduler/first-fit/0"}}
    verdict = run(SCENARIO, tmp_path, chaos=[crash])
    assert verdict["verdict"] == "holds", judged(verdict)


def test_the_checks_of_kemus_own_scheduler_find_nothing_to_judge(tmp_path: Path) -> None:
    found = judged(run(write(tmp_path / "own"), tmp_path / "run"))
    assert found.pop("pod-bound-at-most-once") is True
    assert {found[name] for name in ("no-priority-inversion", "cache-agrees-with-store")} == {None}


def test_who_bound_a_pod_is_known_without_its_help(tmp_path: Path) -> None:
    assert run(write(tmp_path / "own"), tmp_path / "run")["verdict"] == "holds"


def test_its_module_lies_beside_the_scenario_and_a_replay_finds_it_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "own")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    run(path, tmp_path / "run")
    assert str(path.parent) not in os.environ.get("PYTHONPATH", "")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(path.parent)])
    del sys.modules["mine"]
    assert [each.difference for each in replays.replay(tmp_path / "run")] == [None]


def test_a_folder_of_modules_can_be_named(tmp_path: Path) -> None:
    write(tmp_path / "code")
    path = tmp_path / "other" / "own.yaml"
    path.parent.mkdir()
    path.write_text((tmp_path / "code" / "own.yaml").read_text().replace("spec:\n", "spec:\n  modules: [../code]\n", 1))
    assert run(path, tmp_path / "run")["verdict"] == "holds"


def test_two_scenarios_with_modules_of_one_name_are_not_mixed_up(tmp_path: Path) -> None:
    run(write(tmp_path / "one"), tmp_path / "run")
    with pytest.raises(ScenarioError, match=r"module mine of another scenario, .*one/mine.py, is in use"):
        loader.load(write(tmp_path / "two"))


@pytest.mark.parametrize(
    ("factory", "complaint"),
    [
        ("mine", "must be module:Class, not 'mine'"),
        ("nobody:Direct", "nobody:Direct cannot be loaded: No module named 'nobody'"),
        ("mine:Nobody", "mine:Nobody cannot be loaded: module 'mine' has no attribute 'Nobody'"),
        ("mine:clients", "is no actor"),
    ],
)
def test_mistakes_are_told_with_their_place(factory: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        loader.load(write(tmp_path, factory=factory))
    (problem,) = caught.value.problems
    assert problem.path == "spec.schedulers[0].factory"
    assert complaint in problem.message


def test_switches_of_kemus_own_scheduler_cannot_stand_beside_it(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="policy: cannot stand beside factory"):
        loader.load(write(tmp_path), overrides={"schedulers[0].policy": {"queue": "fifo"}})


RAISES = ACTOR.replace('"default", name, pod.metadata.uid', '"default", name, pod.metadata.nobody')


def test_what_it_raises_is_told_with_file_line_and_name_and_is_exit_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, RAISES)
    assert main(["run", str(path), "--out", str(tmp_path / "run")]) == 4
    told = capsys.readouterr().err
    line = RAISES.splitlines().index(next(row for row in RAISES.splitlines() if "nobody" in row)) + 1
    assert "scheduler/mine/0 (incarnation 1) failed at 6.0" in told
    assert f"in your own code: {tmp_path / 'mine.py'}:{line} in Direct.place: await self.client.bind(" in told


def test_an_error_of_the_api_server_that_it_does_not_handle_is_its_own(tmp_path: Path) -> None:
    path = write(tmp_path, ACTOR.replace('place("a")', 'place("nobody")'))
    with pytest.raises(UserCodeFailed, match="NotFound") as caught:
        run(path, tmp_path / "run")
    assert (Path(caught.value.file).name, caught.value.function) == ("mine.py", "Direct.place")


@pytest.mark.parametrize(
    ("actor", "line", "function"),
    [
        (ACTOR + "\n\n1 / 0\n", len(ACTOR.splitlines()) + 3, "<module>"),
        (ACTOR.replace("self.config = config", "self.config = config['nothing']"), 7, "Direct.__init__"),
        (ACTOR.replace("def run(self):", "def run(self:"), 10, "<module>"),
    ],
    ids=["module", "factory", "syntax"],
)
def test_so_is_what_raises_before_it_runs(
    actor: str, line: int, function: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(write(tmp_path, actor)), "--out", str(tmp_path / "run")]) == 4
    assert f"in your own code: {tmp_path / 'mine.py'}:{line} in {function}" in capsys.readouterr().err


def test_a_plugin_that_raises_is_told_in_the_same_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine_plugin.py").write_text(
        "from kemu.scheduler.framework import NodeFilterPlugin\n\n\n"
        "class Odd(NodeFilterPlugin):\n    def filter(self, pod, node):\n        return node.nothing\n"
    )
    config = {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "mine_plugin:Odd"}]}}}]}
    path = tmp_path / "own.yaml"
    path.write_text(SPEC.replace('factory: "FACTORY", config: {when: 3}', f"config: {json.dumps(config)}"))
    assert main(["run", str(path), "--out", str(tmp_path / "run")]) == 4
    assert f"{tmp_path / 'mine_plugin.py'}:6 in Odd.filter: return node.nothing" in capsys.readouterr().err


def test_an_error_of_kemu_is_not_the_users(tmp_path: Path) -> None:
    from kemu.runtime import user_code

    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    caught.value.__traceback__ = caught.value.__traceback__.tb_next  # type: ignore[union-attr]  # not this test's line
    assert type(user_code.failed("x", caught.value)) is not UserCodeFailed


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
@pytest.mark.parametrize("actor", [ACTOR, RAISES], ids=["holds", "raises"])
def test_on_ray(actor: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, actor)
    code = main(["run", str(path), "--runtime", "ray", "--speed", "10", "--json", "--out", str(tmp_path / "run")])
    captured = capsys.readouterr()
    if actor == ACTOR:
        assert (code, json.loads(captured.out)["verdict"]) == (0, "holds")
    else:
        assert code == 4
        assert json.loads(captured.out)["place"]["file"] == str(tmp_path / "mine.py")
