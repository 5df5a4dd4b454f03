"""The pytest plugin, as pytest runs it."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import kemu.doors.cli.main
import kemu.doors.testing.pytest_items
from kemu.lab.scenario.playing.replaying import replays
from kemu.lab.up.virtual.replays import setting

pytest_plugins = ["pytester"]

NAME = "kemu.doors.testing.pytest_plugin"
INSTALLED = any(entry.value == NAME for entry in metadata.entry_points(group="pytest11"))

HEAD = "import asyncio\nimport kemu\nimport pytest\n\n\n"

PROGRAM = """
async def test_it_runs(kemu_cluster):
    async with kemu_cluster(nodes=3) as c:
        await c.create(kemu.pod("a"))
        await asyncio.sleep(900)
        await c.eventually(lambda: c.pod("a").running)
        assert c.now_s > 900
"""

TOO_LARGE = """
async def test_too_large(kemu_cluster):
    async with kemu_cluster() as c:
        await c.create(kemu.pod("a", cpu=100))
        await c.eventually(lambda: c.pod("a").running)
"""

SCENARIO = """\
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: three-pods}
spec:
  nodes: [{name: node-1}]
  workloads: [{name: web, arrivals: {count: 3}, pods: {spec: {containers: [{name: main}]}}}]
  expect:
    - {id: all-bound, counter: pods_bound, equals: 3}
"""

LATE = """\
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: late}
spec:
  duration: 20s
  timing: {podStart: 3s}
  nodes: [{name: node-1}]
  workloads: [{name: web, arrivals: {every: 1s}, pods: {spec: {containers: [{name: main}]}}}]
  expect: [{id: never, pods: {workload: web}, all: {running: {before: 25s}}}]
"""

RACE = "races/two-schedulers-one-node"


@pytest.fixture(autouse=True)
def _settings(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest(*(() if INSTALLED else ("-p", NAME)), "-p", "no:hypothesispytest", *arguments)


def failure(result: pytest.RunResult) -> list[str]:
    """The lines of the only failure, without its headline."""
    text = result.stdout.str()
    found = re.search(r"=+ FAILURES =+\n_+ .* _+\n(.*?)\n(=+ short test summary|---)", text, re.DOTALL)
    assert found is not None, text
    return found[1].splitlines()


def command(lines: list[str]) -> list[str]:
    """The arguments of the command that runs the failure again."""
    (line,) = [line for line in lines if line.startswith("again: pytest ")]
    return line.removeprefix("again: pytest ").split()


def tapes(pytester: pytest.Pytester) -> list[Path]:
    return sorted(pytester.path.glob(".pytest_cache/d/kemu/*.yaml"))


def test_unused_it_imports_nothing_and_costs_next_to_nothing() -> None:
    script = f"import pytest, sys; had = {{*sys.modules}}; import {NAME}; print({{*sys.modules}} - had)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = ast.literal_eval(done.stdout)
    names = {"kemu", "kemu._moved", "kemu.doors", "kemu.doors.testing", "kemu.doors.testing.pytest_names", NAME}
    assert modules == names, "these six take milliseconds"


@pytest.mark.parametrize("asyncio_plugin", ["auto", "strict", "none"])
def test_an_async_test_runs_in_virtual_time(asyncio_plugin: str, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        HEAD
        + PROGRAM
        + "\n\nclass TestThem:\n    async def test_method(self, kemu_cluster):\n        await asyncio.sleep(3600)\n"
    )
    arguments = ["-p", "no:asyncio"] if asyncio_plugin == "none" else [f"--asyncio-mode={asyncio_plugin}"]
    if asyncio_plugin == "none":
        pytester.makeini("[pytest]\n")
    run(pytester, *arguments).assert_outcomes(passed=2)


def test_the_marker_alone_makes_an_async_test_one_of_ours(pytester: pytest.Pytester) -> None:
    body = "async def test_it():\n    async with kemu.cluster(nodes=2) as c:\n        assert c.scenario.seed == 5\n"
    pytester.makepyfile(f"{HEAD}@pytest.mark.kemu(seed=5)\n{body}")
    run(pytester).assert_outcomes(passed=1)


def test_other_tests_are_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"{HEAD}async def test_it():\n    assert type(asyncio.get_running_loop()).__name__ != 'VirtualLoop'\n"
    )
    run(pytester, "--asyncio-mode=auto").assert_outcomes(passed=1)


def test_a_failure_fits_on_a_screen_and_says_how_to_run_it_again(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(HEAD + PROGRAM + TOO_LARGE)
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    lines = failure(result)
    assert len(lines) <= 40
    assert "in test_too_large: await c.eventually(" in lines[0]
    assert any("a fits nowhere (Insufficient cpu" in line for line in lines)
    again = run(pytester, *command(lines))
    again.assert_outcomes(failed=1, deselected=0)
    assert failure(again)[1:4] == lines[1:4]
    everything = run(pytester, *command(lines)[1:])
    everything.assert_outcomes(failed=1, deselected=1)


def test_a_long_story_fits_too(pytester: pytest.Pytester) -> None:
    body = TOO_LARGE.replace("100))", '1, **{"priority": ""}), *(kemu.pod(f"p{n}", cpu=2) for n in range(60)))')
    pytester.makepyfile(HEAD + body.replace('c.pod("a").running', "len(c.pods) > 99, within=500"))
    assert len(failure(run(pytester))) <= 40


def test_what_failed_comes_first_the_next_time_until_it_is_fixed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(HEAD + PROGRAM + TOO_LARGE)
    run(pytester)
    assert len(tapes(pytester)) == 1
    second = run(pytester, "-v")
    order = re.findall(r"::(test_\w+) (?:PASSED|FAILED)", second.stdout.str())
    assert order == ["test_too_large", "test_it_runs"]
    assert any(line.startswith("failed before: seed 0") for line in failure(second))
    assert len(tapes(pytester)) == 1
    pytester.makepyfile(HEAD + PROGRAM + TOO_LARGE.replace("100", "1"))
    run(pytester).assert_outcomes(passed=2)
    assert tapes(pytester) == []


def test_a_program_is_run_with_as_many_seeds_as_wanted(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"{HEAD}SEEDS = []\n\n\n@pytest.mark.kemu(runs=4)\nasync def test_it(kemu_cluster):\n"
        "    async with kemu_cluster() as c:\n        SEEDS.append(c.scenario.seed)\n\n\n"
        "def test_then():\n    assert len(set(SEEDS)) == EXPECTED\n".replace("EXPECTED", "4")
    )
    run(pytester).assert_outcomes(passed=2)
    run(pytester, "--kemu-runs", "2").assert_outcomes(passed=1, failed=1)


def test_a_scenario_of_the_marker(pytester: pytest.Pytester) -> None:
    (pytester.path / "three.yaml").write_text(SCENARIO)
    pytester.makepyfile(
        f"{HEAD}@pytest.mark.kemu(scenario='three.yaml')\ndef test_it():\n    pass\n\n\n"
        f"@pytest.mark.kemu(scenario='{RACE}', runs=3, strategy='seeds', settings={{'duration': '30s'}})\n"
        "def test_shipped():\n    pass\n\n\n"
        "@pytest.mark.kemu(scenario='three.yaml', settings={'workloads[0].arrivals.count': 2})\n"
        "def test_it_fails():\n    pass\n"
    )
    result = run(pytester)
    result.assert_outcomes(passed=2, failed=1)
    lines = failure(result)
    assert lines[0].startswith("three-pods fails (seed 0")
    assert "✗ all-bound: pods_bound = 2" in lines[1]
    (tape,) = tapes(pytester)
    assert f"or:    kemu run {tape.relative_to(pytester.path)}" in lines
    run(pytester, *command(lines)).assert_outcomes(failed=1)
    assert kemu.doors.cli.main.main(["run", str(tape), "--json", "--out", str(pytester.path / "run")]) == 1


def test_a_scenario_that_changed_since_it_failed_runs_as_it_was_and_as_it_is(pytester: pytest.Pytester) -> None:
    few = SCENARIO.replace("count: 3", "count: 2")
    assert few != SCENARIO
    pytester.makepyfile(f"{HEAD}@pytest.mark.kemu(scenario='three.yaml')\ndef test_it():\n    pass\n")
    (pytester.path / "three.yaml").write_text(few)
    run(pytester).assert_outcomes(failed=1)
    (pytester.path / "three.yaml").write_text(few.replace("{name: node-1}", "{name: node-1}, {name: node-2}"))
    assert any("changed since it failed (nodes): it fails with" in line for line in failure(run(pytester)))
    (pytester.path / "three.yaml").write_text(SCENARIO)
    result = run(pytester)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*::test_it: a stored failure: *(workloads): it fails with those of then, and *"])
    assert tapes(pytester) == []


def test_a_function_looks_at_every_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"{HEAD}SEEN = []\n\n\n@pytest.mark.kemu(scenario='{RACE}', runs=3, strategy='seeds')\n"
        "def test_it(kemu_run, tmp_path):\n"
        "    SEEN.append(kemu_run.seed)\n    assert kemu_run.holds\n    assert tmp_path.is_dir()\n\n\n"
        "def test_then():\n    assert len(set(SEEN)) == 3\n\n\n"
        f"@pytest.mark.kemu(scenario='{RACE}', runs=3)\ndef test_wrong(kemu_run):\n"
        "    assert kemu_run.pods['red-pod'].rejected == 'no'\n"
    )
    result = run(pytester)
    result.assert_outcomes(passed=2, failed=1)
    assert "in test_wrong: assert kemu_run.pods['red-pod'].rejected == 'no'" in failure(result)[0]


def test_scenario_files_are_tests(pytester: pytest.Pytester) -> None:
    (pytester.path / "three.kemu.yaml").write_text(SCENARIO)
    (pytester.path / "two.kemu.yaml").write_text(SCENARIO.replace("equals: 3", "equals: 2"))
    matrix = "  matrix: {'workloads[0].arrivals.count': [3, 4]}\n  expect:"
    (pytester.path / "matrix.kemu.yaml").write_text(SCENARIO.replace("  expect:", matrix))
    result = run(pytester, "-v")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["matrix.kemu.yaml::count=4 FAILED*", "three.kemu.yaml::three PASSED*"])
    run(pytester, "two.kemu.yaml::two", "--kemu-runs", "5").assert_outcomes(failed=1)


def test_a_scenario_file_with_mistakes_is_an_error(pytester: pytest.Pytester) -> None:
    (pytester.path / "wrong.kemu.yaml").write_text(SCENARIO.replace("nodes", "nodez"))
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*wrong.kemu.yaml:5:3: spec.nodez: is not a key*"])


def test_what_was_never_judged_fails(pytester: pytest.Pytester) -> None:
    (pytester.path / "late.kemu.yaml").write_text(LATE)
    result = run(pytester, "--kemu-runs", "2", "--kemu-strategy", "seeds", "-p", "no:warnings")
    result.assert_outcomes(failed=1)
    assert "not judged in any of 2 runs" in failure(result)[-1]


@pytest.mark.thorough
def test_workers_of_xdist_find_the_same(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(HEAD + PROGRAM + TOO_LARGE)
    for name in ("two", "three"):
        (pytester.path / f"{name}.kemu.yaml").write_text(SCENARIO)
    three_runs = ("--kemu-runs", "3", "--kemu-strategy", "uniform,seeds", "-p", "no:cacheprovider")
    alone = run(pytester, *three_runs)
    shutil.rmtree(pytester.path / ".kemu")
    parallel = run(pytester, *three_runs, "-n", "2")
    alone.assert_outcomes(passed=3, failed=1)
    parallel.assert_outcomes(passed=3, failed=1)
    lines, others = failure(alone), failure(parallel)
    assert [line for line in others if line in lines] == lines
    assert (pytester.path / ".kemu").is_dir()


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("(scenery='x')", "the marker kemu takes scenario, runs, strategy"),
        ("('x')", "the marker kemu takes keywords only"),
        ("(runs=2)", r"@pytest\.mark\.kemu\(scenario=…\) has to say which scenario"),
    ],
)
def test_mistakes_in_the_marker(marker: str, said: str, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(f"{HEAD}@pytest.mark.kemu{marker}\ndef test_it(kemu_run):\n    pass\n")
    result = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert re.search(said, result.stderr.str())


def test_mistakes_on_the_command_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(HEAD + PROGRAM)
    result = run(pytester, "--kemu-replay", "nothing.yaml")
    assert "--kemu-replay: " in result.stderr.str()
    assert "No such file" in result.stderr.str()
    result = run(pytester, "--kemu-runs", "2", "--kemu-strategy", "luck")
    assert "no strategy of programs is called luck; there are" in result.stdout.str()


@pytest.mark.thorough
def test_exploration_finds_what_no_seed_shows(pytester: pytest.Pytester) -> None:
    body = f"@pytest.mark.kemu(scenario='{RACE}', runs=40, strategy='STRATEGY')\ndef test_it():\n    pass\n"
    pytester.makepyfile(HEAD + body.replace("STRATEGY", "seeds"))
    run(pytester).assert_outcomes(passed=1)
    pytester.makepyfile(HEAD + body.replace("STRATEGY", "observe-late"))
    result = run(pytester, "--kemu-shrink")
    result.assert_outcomes(failed=1)
    lines = failure(result)
    assert len(lines) <= 40
    assert any(
        re.match(r"1\. The news that \S+ was created reached scheduler \S+ (late|only after)", line) for line in lines
    )
    (how,) = [line for line in lines if line.startswith("run ")]
    assert re.fullmatch(r"run \d+ \(observe-late\): seed \d+, 1 hold, shrunk in \d+ runs", how)
    (tape,) = tapes(pytester)
    assert "holds:" in tape.read_text()
    again = run(pytester, *command(lines))
    assert re.fullmatch(r" *✗ (red|blue)-picks-node-1: never bound", failure(again)[1])


OUTDATED = """
class Outdated:
    def __init__(self, env, config):
        self.env = env
        self.client = clients.Client(env, config["apiserver"])
        self.nodes = informers.Informer(self.client, "nodes")
        self.pods = informers.Informer(self.client, "pods", handler=informers.Callbacks(on_add=self.added))
        self.taken = []

    def added(self, pod):
        if not pod.spec.nodeName:
            self.env.spawn(self.place(pod.metadata), "place")

    async def place(self, pod):
        name = next((name for name in sorted(self.nodes.store) if name not in self.taken), "node-1")
        await retries.patiently(self.env, lambda: self.client.bind("default", pod.name, pod.uid, name))
        self.taken.append(name)

    async def run(self):
        await self.nodes.synced()
        await self.pods.synced()
        self.env.ready()
        await asyncio.Event().wait()


@pytest.mark.kemu(runs=60)
async def test_each_node_gets_one():
    async with kemu.cluster(nodes=2, schedulers=[Outdated]) as c:
        await c.create(kemu.pod("a"))
        await c.eventually(lambda: c.pod("a").bound)
        await c.create(kemu.pod("b"))
        await c.eventually(lambda: c.pod("b").bound)
        assert c.pod("a").node != c.pod("b").node
"""


@pytest.mark.thorough
def test_exploration_finds_the_race_of_a_scheduler_of_ones_own(pytester: pytest.Pytester) -> None:
    """It relies on the answer to its binding to come before the next pod."""
    imports = "from kemu.emulated.client import clients, informers, retries\n"
    pytester.makepyfile(imports + HEAD + OUTDATED)
    run(pytester, "--kemu-runs", "1").assert_outcomes(passed=1)
    result = run(pytester, "--kemu-shrink")
    result.assert_outcomes(failed=1)
    lines = failure(result)
    assert "in test_each_node_gets_one: assert c.pod" in lines[0]
    (how,) = [line for line in lines if line.startswith("run ")]
    assert re.fullmatch(r"run \d+ \(\w+\): seed \d+, 1 hold, shrunk in \d+ runs", how)
    (tape,) = tapes(pytester)
    assert "what: bind" in tape.read_text()
    assert failure(run(pytester, *command(lines)))[:2] == lines[:2]


@pytest.mark.ray
@pytest.mark.slow
def test_the_same_test_for_real(pytester: pytest.Pytester) -> None:
    body = PROGRAM.replace("await asyncio.sleep(900)", "await c.advance(1)").replace("assert c.now_s > 900", "")
    pytester.makepyfile(f"{HEAD}@pytest.mark.kemu(speed=10){body}")
    run(pytester).assert_outcomes(passed=1)
    result = pytester.runpytest_subprocess(
        *(() if INSTALLED else ("-p", NAME)), "--asyncio-mode=auto", "--kemu-runtime", "ray"
    )
    result.assert_outcomes(passed=1)


def test_a_mistake_in_the_scenario_is_told_and_not_how_kemu_came_upon_it(pytester: pytest.Pytester) -> None:
    (pytester.path / "wrong.yaml").write_text(SCENARIO.replace("counter: pods_bound", "counter: pods_bond"))
    pytester.makepyfile(HEAD + '@pytest.mark.kemu(scenario="wrong.yaml")\ndef test_it():\n    pass\n')
    result = run(pytester)
    result.assert_outcomes(failed=1)
    (line,) = failure(result)
    told = "spec.expect[0].counter: there is no counter pods_bond (did you mean pods_bound?)"
    assert line == f"{pytester.path}/wrong.yaml:8:32: {told}"


UP = """
import kubernetes

POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "a"}]}}

def create(kemu_up):
    with kubernetes.config.new_client_from_config(str(kemu_up.kubeconfig)) as client:
        kubernetes.client.CoreV1Api(client).create_namespaced_pod("default", POD)

def test_it_fails(kemu_up):
    create(kemu_up)
    kemu_up.step(until="pod/a running")
    assert kemu_up.now_s > 3600

def test_it_holds(kemu_up):
    create(kemu_up)
    kemu_up.step(until="pod/a running")
    print("its folder:", kemu_up.folder)
"""


def test_a_failure_with_a_cluster_tells_what_happened_and_keeps_the_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(UP)
    result = run(pytester, "-rP", "--basetemp", str(pytester.path / "kept"))
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- kemu up -*",
            "*gateway: a is created*",
            "*scheduler: a is bound to node-*",
            "the run folder: *",
            "  kemu replay *",
        ]
    )
    text = result.stdout.str()
    (kept,) = re.findall(r"the run folder: (\S+)", text)
    assert replays.replay(Path(kept), setting=setting)[0].difference is None
    (gone,) = re.findall(r"its folder: (\S+)", text)
    assert not Path(gone).exists()
