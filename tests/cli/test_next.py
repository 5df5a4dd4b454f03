"""What ``kemu run`` proposes to do next."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kemu.doors.cli.main import main
from tests.report.test_terminal import MATRIX, NOTHING_EXPECTED

FAILS = "    - {id: no-preemption, pod: web-2, never: {preempted: {}}}\n"


def proposed(capsys: pytest.CaptureFixture[str], folder: Path, text: str, *arguments: str) -> list[str]:
    file = folder / "storm.yaml"
    file.write_text(text)
    main(["run", str(file), "--out", str(folder / "run"), *arguments])
    lines = capsys.readouterr().out.splitlines()
    begin = lines.index("next") + 1
    return [line.replace(str(folder), "F") for line in lines[begin : lines.index("", begin)]]


@pytest.mark.parametrize("seed", [0, 2])
def test_the_pod_that_failed_whatever_the_seed(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{NOTHING_EXPECTED}  expect:\n{FAILS}"
    assert proposed(capsys, tmp_path, text, "--seed", str(seed)) == [
        "  kemu explain F/run",
        "      why it fails, beside a run that passes",
        "  kemu trace F/run web-2",
        "      what web-2 went through, span by span",
        "  kemu report F/run",
        "      the whole run, on one page for a browser",
        "  kemu replay F/run",
        "      run it again, and compare every event",
        f"  kemu run F/storm.yaml --seed {seed + 1}",
        "      the same with another seed",
    ]


def test_in_the_variant_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    only = FAILS.replace("}}}", "}}, when: {'schedulers[0].policy.queue': priority}}")
    assert proposed(capsys, tmp_path, f"{MATRIX}  expect:\n{only}")[:4] == [
        "  kemu explain F/run/variant-1",
        "      why it fails, beside a run that passes",
        "  kemu trace F/run/variant-1 web-2",
        "      what web-2 went through, span by span",
    ]


def test_the_pod_that_a_check_names_before_one_that_an_expectation_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limit = "  checks: {starvation: {maxWait: 10ms}}\n"
    commands = proposed(
        capsys, tmp_path, f"{NOTHING_EXPECTED}{limit}  expect: [{{counter: preemptions, equals: 77}}]\n"
    )
    checks = json.loads((tmp_path / "run" / "verdict.json").read_text())["checks"]
    (detail,) = [check["detail"] for check in checks if check["id"] == "no-pod-starves" and check["holds"] is False]
    assert commands[2] == f"  kemu trace F/run {re.findall(r'default/([a-z0-9-]+)', detail)[0]}"


def test_a_page_of_a_matrix_and_no_other_seed_of_one_that_has_them_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = proposed(capsys, tmp_path, f"{NOTHING_EXPECTED}  matrix: {{seed: 1..2}}\n")
    place = commands.index("  kemu report F/run")
    assert commands[place + 1] == "      the variants side by side, on one page for a browser"
    assert not [line for line in commands if "--seed" in line]


def test_in_the_variant_in_which_most_pods_were_never_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = "  matrix: {'nodes[0].count': [9, 1]}\n"
    nodes = "  nodes: [{namePrefix: n-, count: 1, allocatable: {cpu: '1', memory: 8Gi, pods: '110'}}]\n"
    pods = "{spec: {containers: [{name: m, resources: {requests: {cpu: '1'}}}]}}"
    head = "apiVersion: kemu.dev/v1\nkind: Scenario\nmetadata: {name: storm}\nspec:\n  duration: 10s\n"
    text = f"{head}{nodes}  workloads: [{{name: w, arrivals: {{count: 4}}, pods: {pods}}}]\n{sizes}"
    assert proposed(capsys, tmp_path, text)[:2] == [
        "  kemu trace F/run/variant-1 w-1",
        "      what w-1 went through, span by span",
    ]


def test_no_report_where_there_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not [line for line in proposed(capsys, tmp_path, NOTHING_EXPECTED, "--report") if "kemu report" in line]
