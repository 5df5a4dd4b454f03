"""``kemu sweep --runtime real``: refusals before the first cell, and figures of real control planes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kemu.doors.cli.main import main
from tests.realkube import binaries

EXPERIMENT = """
apiVersion: kemu.dev/v1
kind: Experiment
metadata: {name: race, description: a race}
spec:
  question: How many?
  scenario:
    duration: 5s
    nodes: [{namePrefix: node-, count: 3, allocatable: {cpu: "8", memory: 16Gi, pods: "110"}}]
    schedulers: [SCHEDULER]
    workloads:
      - {name: w, start: 1s, arrivals: {every: 30ms, count: 40}, pods: {spec: {containers: [{name: main}]}}}
  vary:
    "schedulers[0].replicas": [1, 2]
  seeds: 1
  metrics: [bind_conflicts, pods_bound]
"""


def _file(folder: Path, scheduler: str = "{name: default-scheduler}") -> str:
    file = folder / "race.yaml"
    file.write_text(EXPERIMENT.replace("SCHEDULER", scheduler))
    return str(file)


@pytest.mark.parametrize("options", [["--jobs", "2"], ["--ray"]])
def test_one_control_plane_at_a_time(tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", _file(tmp_path), "--runtime", "real", *options]) == 2
    assert "one control plane at a time" in capsys.readouterr().err


def test_what_no_real_control_plane_can_do_is_refused_before_the_first_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    file = _file(tmp_path, "{name: default-scheduler, policy: {queue: fifo}}")
    assert main(["sweep", file, "--runtime", "real", "--out", str(out)]) == 2
    assert "policy.queue" in capsys.readouterr().err
    assert not out.exists()


def test_a_kubeconfig_needs_the_runtime_real(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", _file(tmp_path), "--kubeconfig", str(tmp_path / "config")]) == 2
    assert "--kubeconfig needs --runtime real" in capsys.readouterr().err


def test_cells_on_real_control_planes_have_the_same_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binaries.require("etcd", "kube-apiserver", "kube-scheduler")
    found = {}
    for runtime in ("sim", "real"):
        out = tmp_path / runtime
        options = ["--runtime", runtime, "--out", str(out), "--json", "--no-plots", "--jobs", "1"]
        assert main(["sweep", _file(tmp_path), *options]) in (0, 3)
        found[runtime] = json.loads(capsys.readouterr().out)
    assert found["real"]["cells"] == {"total": 2, "done": 2, "saturated": 0, "failed": 0}
    bound = [variant["metrics"]["pods_bound"]["mean"] for variant in found["real"]["variants"]]
    refused = [variant["metrics"]["bind_conflicts"]["mean"] for variant in found["real"]["variants"]]
    assert bound == [40, 40]
    assert refused[0] == 0
    assert 20 <= refused[1] <= 40
    # The tables have the same columns, so that results of both can be compared.
    assert [set(one["metrics"]) for one in found["real"]["variants"]] == [
        set(one["metrics"]) for one in found["sim"]["variants"]
    ]
