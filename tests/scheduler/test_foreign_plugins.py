"""Plugins that do not come with kemu: what they may not answer, and what is told when they raise."""

from __future__ import annotations

import json
import random
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kemu.doors.cli.main import main
from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.cycle.decisions import Decider
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.framework import Cluster, Handle, Scope, ScorePlugin
from kemu.emulated.scheduler.plugins.in_tree import REGISTRY
from kemu.runtime.runlog.frames import FILE_NAME, Reader
from tests.scheduler import objects

PLUGIN = """
import numpy as np
from kemu.emulated.scheduler.framework import *

class Wrong({base}):
    def {method}:
        {body}
"""

SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {{name: wrong}}
spec:
  duration: 20s
  nodes: [{{namePrefix: n-, count: 3}}]
  schedulers:
  - name: default-scheduler
    config:
      profiles:
      - schedulerName: default-scheduler
        plugins: {{multiPoint: {{enabled: [{{name: "{module}:Wrong"}}]}}}}
  events:
  - at: 1s
    create: {{apiVersion: v1, kind: Pod, metadata: {{name: a}}, spec: {{containers: [{{name: m}}]}}}}
  expect: [{{pod: a, bound: {{}}}}]
"""


def write(folder: Path, module: str, base: str, method: str, body: str) -> Path:
    (folder / f"{module}.py").write_text(PLUGIN.format(base=base, method=method, body=body))
    scenario = folder / f"{module}.yaml"
    scenario.write_text(textwrap.dedent(SCENARIO).format(module=module))
    return scenario


FILTER, SCORE = ("NodeFilterPlugin", "filter(self, pod, node)"), ("NodeScorePlugin", "score(self, pod, node)")
RANGE = "it should in the range of [0, 100] after normalizing"
APPLYING = 'applying score defaultWeights on Score plugins: plugin "Wrong" returns an invalid score'
SCORING = 'running Score plugins: plugin "Wrong" failed with: score returned'

INVALID = {
    "a filter's boolean": (*FILTER, "return True",
        'running "Wrong" filter plugin: filter returned True; it must return None or a Status'),
    "a filter's object": (*FILTER, "return object()",
        'running "Wrong" filter plugin: filter returned an object; it must return None or a Status'),
    "a filter's error": (*FILTER, "return Status(ERROR, ('no connection',))",
        'running "Wrong" filter plugin: no connection'),
    "a pre-filter's boolean": ("NodeFilterPlugin", "pre_filter(self, pod)", "return True",
        'running PreFilter plugin "Wrong": pre_filter returned True; it must return None, a Status, Narrowed or SKIP'),
    "a mask of another size": ("MaskFilterPlugin", "mask(self, pod, cluster)", "return [True]",
        'running PreFilter plugin "Wrong": mask returned a list; it must return an array of booleans for 3 nodes'),
    "a score too high": (*SCORE, "return 5000", f"{APPLYING} 5000, {RANGE}"),
    "a score too low": (*SCORE, "return -7", f"{APPLYING} -7, {RANGE}"),
    "a score with a fraction": (*SCORE, "return 3.7", f"{SCORING} 3.7; it must return a whole number"),
    "no score": (*SCORE, "return None", f"{SCORING} None; it must return a whole number"),
    "scores of a kept column": ("ScorePlugin", "score(self, state, node)",
        "return 101\n    scope = Scope.NODE", f"{APPLYING} 101, {RANGE}"),
    "fractions in a column": ("ScorePlugin", "scores(self, state, cluster, rows)", "return np.full(len(rows), 0.5)",
        f"{SCORING.replace('score ', 'scores ')} a ndarray; it must return an array of whole numbers for 3 nodes"),
    "a reservation's boolean": ("ReservePlugin", "reserve(self, cycle, node)", "return False",
        'running Reserve plugin "Wrong": reserve returned False; it must return None or a Status'),
    "a permit without a limit": ("PermitPlugin", "permit(self, cycle, node)", "return None",
        'running Permit plugin "Wrong": permit returned None; it must return a pair, of None or a Status and seconds'),
}  # fmt: skip


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_answer_fails_the_attempt_and_names_the_plugin(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in kube-scheduler: an error, not a rejection; the pod backs off and is tried again."""
    *plugin, message = INVALID[case]
    scenario = write(tmp_path, f"answers_{list(INVALID).index(case)}", *plugin)
    assert main(["run", str(scenario), "--json", "--out", str(tmp_path / "run")]) == 1
    verdict: dict[str, Any] = json.loads(capsys.readouterr().out)
    attempts = verdict["counts"]["scheduling_attempts"]
    assert attempts > 2
    assert verdict["errors"] == {message: attempts}
    assert verdict["counts"]["pods_bound"] == 0


def test_errors_of_attempts_stand_beside_the_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = write(tmp_path, "answers_shown", *SCORE, "return 5000")
    main(["run", str(scenario), "--out", str(tmp_path / "run")])
    shown = " ".join(capsys.readouterr().out.split())
    assert f"attempts failed with an error: {APPLYING} 5000, {RANGE}" in shown


RAISING = {
    "Filter": (*FILTER, "return {}['nope']", "KeyError: 'nope'", ", pod default/a, node n-1"),
    "Score": (*SCORE, "return 1 // 0", "ZeroDivisionError: integer division or modulo by zero",
              ", pod default/a, node n-1"),
    "Permit": ("PermitPlugin", "permit(self, cycle, node)", "raise OSError('no permit')", "OSError: no permit",
               ", pod default/a"),
    "PreBind": ("PreBindPlugin", "pre_bind(self, cycle, node)", "raise RuntimeError('no')", "RuntimeError: no",
             ", pod default/a"),
}  # fmt: skip


@pytest.mark.parametrize("point", RAISING)
def test_an_exception_is_told_with_place_plugin_extension_point_and_pod(
    point: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, method, body, what, about = RAISING[point]
    scenario = write(tmp_path, f"raising_{point.lower()}", base, method, body)
    out = tmp_path / "run"
    assert main(["run", str(scenario), "--out", str(out)]) == 4
    first, place, call, log_hint = capsys.readouterr().err.splitlines()
    name = method.partition("(")[0]
    assert first.startswith("kemu: scheduler/default-scheduler/0 (incarnation 1) failed at 1.0")
    assert first.endswith(f"ended with {what}")
    assert place == f"in your own code: {tmp_path / f'raising_{point.lower()}.py'}:7 in Wrong.{name}: {body}"
    assert call == f"plugin Wrong, extension point {point}{about}"

    assert log_hint == f"the traceback is in the run log; kemu story {out} tells what came before"
    assert main(["story", str(out)]) == 0
    assert "scheduler/default-scheduler/0 fails" in capsys.readouterr().out

    with Reader(out / FILE_NAME) as log:
        (logged,) = [event.data["error"] for event in log if event.kind == "actor.failed"]
    assert logged.startswith(first.removeprefix("kemu: "))
    assert "Traceback (most recent call last):" in logged
    assert f'raising_{point.lower()}.py", line 7, in {name}' in logged

    assert main(["run", str(scenario), "--out", str(out), "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert (found["error"], found["exit"]) == ("user-code", 4)
    assert (found["plugin"], found["extensionPoint"], found["pod"]) == ("Wrong", point, "default/a")
    assert found["run"] == str(out)
    assert found["place"] == {
        "file": str(tmp_path / f"raising_{point.lower()}.py"), "line": 7, "function": f"Wrong.{name}",
    }  # fmt: skip


def test_exploring_a_plugin_that_raises_leaves_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its failure has several lines, a scenario's description one."""
    scenario = write(tmp_path, "raising_explored", *FILTER, "return {}['nope']")
    out = tmp_path / "search"
    assert main(["explore", str(scenario), "--runs", "1", "--jobs", "1", "--out", str(out)]) == 1
    assert "plugin Wrong, extension point Filter, pod a" in " ".join(capsys.readouterr().out.split())
    (found,) = out.glob("failures/*/scenario.yaml")
    assert "KeyError: 'nope' in your own code: " in " ".join(found.read_text().split())


@pytest.mark.parametrize(
    ("base", "method", "told"),
    [
        ("NodeFilterPlugin", "post_bind(self, pod, node)", ("post_bind", "PostBindPlugin")),
        ("FilterPlugin", "filter(self, pod, node)", ("filter", "NodeFilterPlugin")),
        ("NodeFilterPlugin", "score(self, pod, node)", ("score", "NodeScorePlugin")),
    ],
)
def test_a_method_that_nobody_would_call(
    base: str, method: str, told: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, wanted = told
    module = f"uncalled_{name}"
    scenario = write(tmp_path, module, base, method, "pass")
    assert main(["run", str(scenario), "--out", str(tmp_path / "run")]) == 2
    err = capsys.readouterr().err
    assert (
        f"spec.schedulers[0].config.profiles[0].plugins.multiPoint.enabled[0]: '{module}:Wrong' has the method {name}, "
        f"but is no {wanted}: nobody would call it (derive it from {wanted}, or rename the method)"
    ) in err


def test_a_class_of_ones_own_is_named_with_a_colon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = write(tmp_path, "with_a_dot", *FILTER, "pass")
    scenario.write_text(scenario.read_text().replace("with_a_dot:Wrong", "with_a_dot.Wrong"))
    assert main(["run", str(scenario)]) == 2
    told = "there is no plugin 'with_a_dot.Wrong' (a class of your own is with_a_dot:Wrong)"
    assert told in capsys.readouterr().err


class Crowd(ScorePlugin):
    """A column form that keeps account of what it is asked."""

    scope = Scope.NODE

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        super().__init__(args, handle)
        self.asked: list[list[int] | None] = []

    def scores(self, state: Any, cluster: Cluster, rows: IntArray | None) -> IntArray:
        self.asked.append(None if rows is None else sorted(rows.tolist()))
        nodes = cluster.rows if rows is None else [cluster.rows[row] for row in rows.tolist()]
        return np.array([len(node.pods) for node in nodes], dtype=np.int64)


@pytest.mark.parametrize("changed", [3, 90])
def test_a_kept_score_is_asked_once_for_all_nodes_that_changed(changed: int) -> None:
    """However many these are: 90 of 100 are so many that the filters' columns are built anew."""
    cluster = Cluster()
    for number in range(100):
        cluster.set_node(objects.node(f"node-{number}"))
    handle = Handle(cluster, random.Random(1))
    registry = REGISTRY.extended({"Crowd": Crowd})
    configuration = configurations.configuration_of(
        {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Crowd", "weight": 10_000}]}}}]}
    )
    profile = Profile(configuration.profiles[0], handle, registry)
    decider = Decider(profile, cluster, handle.random, 100)
    assert decider.decide(cluster.pending(objects.pod("first"))).feasible == 100
    crowd = profile.plugins["Crowd"]
    assert isinstance(crowd, Crowd)
    assert crowd.asked == [None]
    for number in range(changed):
        for twin in "ab":
            cluster.see_pod(objects.pod(f"{number}{twin}", "1m", on=f"node-{number}"))
    cluster.see_pod(objects.pod("more", "1m", on="node-2"))
    assert decider.decide(cluster.pending(objects.pod("second"))).node == "node-2"
    assert crowd.asked == [None, list(range(changed))]
