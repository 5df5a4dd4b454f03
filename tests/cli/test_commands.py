"""The command line as its users meet it: output, exit codes, errors."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import jsonschema
import pytest

from kemu.doors.cli.main import main
from kemu.lab.scenario import catalog

RACE = "races/two-schedulers-one-node"

MISTAKES = """\
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: mistakes}
spec:
  duration: 5 minutes
  nodez: []
  nodes:
    - name: node-1
      allocatable: {cpu: "10", memory: 1Gii}
    - name: node-1
  schedulers:
    - name: default-scheduler
      policy: {queue: lifo}
  priorityClasses: {high: 1000}
  manifests:
    - {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {priorityClassName: hihg, containers: [{name: m}]}}
    - {apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{name: m, resources: {limits: {cpu: -1}}}]}}
    - {apiVersion: v1, kind: Pood, metadata: {name: c}}
  events:
    - {at: 5s}
  workloads:
    - name: w
      arrivals: {poisson: {rate: 5 per second}, until: 4m}
      pods: {spec: {containers: [{name: m}]}}
  expect:
    - {pod: nobody, bound: {}}
"""


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_run_prints_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = output(capsys, "run", RACE, "--json", "--out", str(tmp_path / "run"), "--runtime", "sim")
    verdict = json.loads(out)
    assert code == 0
    assert verdict["verdict"] == "holds"
    assert {"scenario", "runtime", "seed", "digest", "virtual_s", "wall_s", "run"} <= verdict.keys()
    assert all({"id", "holds", "detail"} <= found.keys() for found in verdict["expectations"] + verdict["checks"])
    assert verdict["counts"]["admissions_rejected"] >= 1
    assert all({"p50_s", "p99_s", "max_s"} <= group.keys() for group in verdict["waiting"].values())
    assert json.loads((tmp_path / "run" / "verdict.json").read_text()) == verdict


def test_run_tells_the_story_and_what_to_try_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = output(capsys, "run", RACE, "--out", str(tmp_path / "run"))
    assert code == 0
    assert "is rejected: OutOfcpu" in out
    assert f"kemu replay {tmp_path / 'run'}" in out
    assert "kemu trace" in out


def test_a_failed_expectation_is_exit_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = catalog.find(RACE).read_text()
    scenario = tmp_path / "wrong.yaml"
    scenario.write_text(text + "    - {counter: preemptions, equals: 7}\n")
    code, out, _ = output(capsys, "run", str(scenario), "--json", "--out", str(tmp_path / "run"))
    assert (code, json.loads(out)["verdict"]) == (1, "fails")


def test_what_cannot_be_judged_is_exit_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "short.yaml"
    scenario.write_text(
        """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: short}
spec:
  duration: 10s
  nodes: [{name: n1}]
  manifests:
    - apiVersion: v1
      kind: Pod
      metadata: {name: a, annotations: {kemu.dev/run-seconds: "100"}}
      spec: {restartPolicy: Never, containers: [{name: m}]}
  expect: [{pod: a, deleted: {before: 20s}}]
"""
    )
    code, out, _ = output(capsys, "run", str(scenario), "--json", "--out", str(tmp_path / "run"))
    assert (code, json.loads(out)["verdict"]) == (3, "unknown")


def test_ten_mistakes_are_ten_located_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "mistakes.yaml"
    scenario.write_text(MISTAKES)
    code, out, err = output(capsys, "run", str(scenario), "--out", str(tmp_path / "run"))
    assert (code, out) == (2, "")
    lines = [line for line in err.splitlines() if line.startswith(f"{scenario}:")]
    for number, word in (
        (5, "5 minutes"), (6, "nodez"), (9, "1Gii"), (10, "node-1"), (13, "lifo"), (16, "hihg"), (17, "cpu"),
        (18, "Pood"), (20, "at: 5s"), (23, "rate"), (26, "nobody"),
    ):  # fmt: skip
        found = [line for line in lines if line.startswith(f"{scenario}:{number}:")]
        assert found, f"no complaint about line {number} ({word}) in:\n{err}"
    assert not (tmp_path / "run").exists()


def test_validate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert output(capsys, "scenarios", "validate", RACE)[0] == 0
    scenario = tmp_path / "mistakes.yaml"
    scenario.write_text(MISTAKES)
    code, out, _ = output(capsys, "scenarios", "validate", str(scenario), "--json")
    found = json.loads(out)
    assert (code, found["valid"]) == (2, False)
    assert len(found["problems"]) >= 10
    assert all(problem["line"] > 0 and problem["column"] > 0 for problem in found["problems"])


def test_the_schema_accepts_every_shipped_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    import yaml

    code, out, _ = output(capsys, "scenarios", "schema")
    assert code == 0
    validator = jsonschema.Draft202012Validator(json.loads(out))
    for path in catalog.shipped().values():
        assert not list(validator.iter_errors(yaml.load(path.read_text(), yaml.CSafeLoader))), path


def test_list_and_show(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = output(capsys, "scenarios", "list", "--json")
    assert RACE in [each["name"] for each in json.loads(out)["scenarios"]]
    _, out, _ = output(capsys, "scenarios", "show", "two-schedulers-one-node")
    assert out.startswith("apiVersion: kemu.dev/v1") or "kind: Scenario" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "two-schedulers-one-nod"], "did you mean"),
        (["run", "races"], "is a folder of scenarios; there are races/approvals, races/"),
        (["run", RACE, "--set", "nonsense"], "PATH=VALUE"),
        (["run", RACE, "--set", "=1"], "PATH=VALUE"),
        (["run", RACE, "--set", "seed=2000-01-01"], "not the text '2000-01-01'"),
        (["run", RACE, "--set", "seed=[1"], "--set seed:2:1: is not YAML"),
        (["run", RACE, "--set", "seed=!!python/name:os 1"], "has no meaning here"),
        (["run", RACE, "--set", "nodes[1].name=x"], "spec.nodes has 1 item"),
        (["run", RACE, "--set", "schedulers[9].policy.queue=fifo"], "schedulers"),
        (["run", RACE, "--store", "nowhere"], "etcd://HOST:PORT"),
        (["replay", "nowhere"], "nowhere"),
        (["trace", "nowhere", "a"], "nowhere"),
        (["bench", "nothing"], "sim-pods"),
    ],
)
def test_bad_arguments_are_exit_2_with_a_reason(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = output(capsys, *arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_a_folder_that_cannot_be_made_is_wrong_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    assert main(["run", "races/two-schedulers-one-node", "--out", str(taken)]) == 2
    assert f"kemu: {taken}: File exists" in capsys.readouterr().err


def test_trace_says_which_variant_it_shows_and_lets_one_choose(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "run")
    output(capsys, "run", "seeds/preemption-example-4", "--json", "--out", folder, "--runtime", "sim")
    names = [f"clearLowerNominations={word}" for word in ("current", "always")]
    code, out, _ = output(capsys, "trace", folder, "c")
    assert (code, out.splitlines()[0].startswith(f"variant 0: {names[0]}")) == (0, True)
    assert "--variant chooses another of 2" in out.splitlines()[0]
    for wanted in ("1", names[1]):
        code, out, _ = output(capsys, "trace", folder, "c", "--variant", wanted)
        assert (code, out.splitlines()[0]) == (0, f"variant 1: {names[1]}")
    code, _, err = output(capsys, "trace", folder, "c", "--variant", "7")
    assert code == 2
    assert "no variant is so; there are" in err
    assert all(name in err for name in names)
    code, _, err = output(capsys, "trace", f"{folder}/variant-0", "c", "--variant", "queue=fifo")
    assert code == 2


def test_refused_requests_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "run")
    _, out, _ = output(capsys, "run", "races/two-replicas-same-pods", "--json", "--out", folder, "--runtime", "sim")
    verdict = json.loads(out)
    assert sum(verdict["refused"].values()) == verdict["counts"]["requests_refused"] > 0
    assert verdict["refused"]["bind pods: Conflict"] == verdict["counts"]["bind_conflicts"]
    _, out, _ = output(capsys, "run", "races/two-replicas-same-pods", "--out", folder, "--runtime", "sim")
    assert f"refused: {verdict['counts']['bind_conflicts']} bind pods: Conflict" in out


@pytest.mark.parametrize(("package", "extra"), [("ray", "ray"), ("grpc_health", "ray"), ("opentelemetry", "otlp")])
def test_a_package_of_an_extra_that_is_missing_is_named(
    package: str, extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(options: object) -> int:
        raise ModuleNotFoundError(f"No module named {package!r}", name=f"{package}.inner")

    monkeypatch.setattr("kemu.doors.cli.commands.runs.run.command", missing)
    assert main(["run", "races/two-schedulers-one-node"]) == 2
    assert f"kemu[{extra}]" in capsys.readouterr().err


def test_any_other_module_that_is_missing_is_a_bug(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(options: object) -> int:
        raise ModuleNotFoundError("No module named 'kemu.nothing'", name="kemu.nothing")

    monkeypatch.setattr("kemu.doors.cli.commands.runs.run.command", missing)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code, _, err = output(capsys, "run", "races/two-schedulers-one-node")
    (report,) = tmp_path.glob("kemu-crash-*.txt")
    assert code == 4
    assert "bug in kemu" in err
    assert str(report) in err
    assert "No module named 'kemu.nothing'" in report.read_text()


@pytest.mark.parametrize("width", [60, 80])
def test_a_list_of_scenarios_fits_the_terminal(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = output(capsys, "scenarios", "list")
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines()]
    assert code == 0
    assert max(map(len, lines)) <= width
    # Names are as wide as those of their folder; beside long ones a narrow terminal has no room for sentences, so they
    # stand below. What is cut is cut between words, and shows it.
    if width == 60:
        place = lines.index("chaos/bit-rot")
        assert lines[place + 1] == "    Drives return wrong bits now and then; etcd finds them…"
        assert "extenders/gpu-share  Pods share GPUs, but each must fit on…" in lines
    else:
        assert "chaos/bit-rot                            Drives return wrong bits now and then;…" in lines
    assert lines[-1] == "kemu scenarios show NAME prints one, kemu run NAME runs it"


@pytest.mark.parametrize("words", [["conformance", "live"], ["scheduler", "--kubeconfig", "no-such-file"]])
def test_clients_of_clusters_name_their_extra(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    assert main(words) == 2
    told = capsys.readouterr().err
    assert "kemu[cluster]" in told
    assert "Traceback" not in told
