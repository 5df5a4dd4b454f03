"""Amounts that are legal and hardly meant, units that nobody has, tabs."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from kemu.doors.cli.main import main
from kemu.errors import ScenarioError
from kemu.lab.bench.clusters import large_clusters
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader

HEAD = "apiVersion: kemu.dev/v1\nkind: Scenario\nmetadata: {name: it}\nspec:\n"
POD = (
    "  manifests: [{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, "
    "spec: {{containers: [{{name: m, resources: {}}}]}}}}]\n"
)
NODE = "  nodes: [{name: n}]\n"


def warned(spec: str) -> list[str]:
    return [warning.as_warning().partition(": ")[2] for warning in loader.loads(HEAD + spec, "it.yaml").warnings]


RESOURCES = "warning: spec.manifests[0].spec.containers[0].resources"


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        ("{requests: {memory: 16}}", "requests.memory: is 16 bytes: it has no unit (did you mean 16Mi or 16Gi?)"),
        ("{limits: {memory: '1'}}", "limits.memory: is 1 byte: it has no unit (did you mean 1Mi or 1Gi?)"),
        ("{requests: {memory: 512m}}",
         "requests.memory: is 0.512 bytes: m means thousandths (did you mean 512Mi or 512M?)"),
        ("{requests: {ephemeral-storage: 2}}",
         "requests[ephemeral-storage]: is 2 bytes: it has no unit (did you mean 2Mi or 2Gi?)"),
        ("{requests: {cpu: 500}}", "requests.cpu: is 500 cores for one container (did you mean 500m?)"),
        ("{requests: {cpu: 2G}}", "requests.cpu: is 2000000000 cores (did you mean 2?)"),
    ],
)  # fmt: skip
def test_amounts_that_are_hardly_meant(resources: str, text: str) -> None:
    path, _, rest = text.partition(": ")
    path = path.replace("requests[ephemeral-storage]", "requests.ephemeral-storage")
    assert warned(NODE + POD.format(resources)) == [f"{RESOURCES}.{path}: {rest}"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ("  nodes: [{name: n, allocatable: {cpu: 4, memory: 16}}]", "spec.nodes[0].allocatable.memory"),
        ("  nodes: [{name: n, usage: {memory: {ramp: {from: 16, to: 1Gi, over: 5m}}}}]",
         "spec.nodes[0].usage.memory.ramp.from"),
        ("  nodes: [{name: n, kubelet: {evictionHard: {memory.available: '16'}}}]",
         "spec.nodes[0].kubelet.evictionHard[memory.available]"),
        ("  nodes: [{name: n, allocatable: {memory: 8Gi}}]\n  matrix: {'nodes[0].allocatable.memory': [8Gi, 16]}",
         "spec.nodes[0].allocatable.memory"),
    ],
)  # fmt: skip
def test_amounts_of_nodes_and_of_variants(spec: str, path: str) -> None:
    text = "is 16 bytes: it has no unit (did you mean 16Mi or 16Gi?)"
    assert warned(spec) == [f"warning: {path}: {text}"]


@pytest.mark.parametrize(
    "spec",
    [
        NODE + POD.format("{requests: {memory: 512Ki, cpu: 500m}, limits: {memory: 1048576, cpu: 64}}"),
        NODE + POD.format("{requests: {memory: 0, cpu: 0}}"),
        "  nodes: [{name: n, allocatable: {cpu: 512, memory: 1Ti, example.com/gpu: 8}, labels: {memory: '16'}}]",
        "  nodes: [{name: n, kubelet: {evictionHard: {memory.available: 10%}}}]",
    ],
)  # fmt: skip
def test_amounts_that_are_meant(spec: str) -> None:
    assert warned(spec) == []


def test_the_shipped_scenarios_have_none() -> None:
    for name, path in catalog.shipped().items():
        if not name.startswith("traces/"):
            few = large_clusters.scaled(path, 100) if name.startswith("scale/") else None
            warned = [warning.message for warning in loader.load(path, None, few).warnings]
            if name == "rollouts/from-a-dump":
                (told,) = warned
                assert told.startswith("what servers wrote is dropped: uid, resourceVersion, creationTimestamp")
            else:
                assert warned == [], path


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("64GB", "'64GB' ends in 'GB'; did you mean 64G or 64Gi?"),
        ("64gib", "'64gib' ends in 'gib'; did you mean 64Gi?"),
        ("64g", "'64g' ends in 'g'; did you mean 64G or 64Gi?"),
        ("512mb", "'512mb' ends in 'mb'; did you mean 512M or 512Mi?"),
        ("64KB", "'64KB' ends in 'KB'; did you mean 64k or 64Ki?"),
        ("10bytes", "'10bytes' ends in 'bytes'; did you mean 10?"),
        ("2cores", "'2cores' ends in 'cores'; did you mean 2?"),
        ("500mcpu", "'500mcpu' ends in 'mcpu'; did you mean 500m?"),
    ],
)
def test_units_that_nobody_has(written: str, meant: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        loader.loads(f"{HEAD}  nodes: [{{name: n, allocatable: {{memory: {written}}}}}]\n", "it.yaml")
    assert str(caught.value) == (
        f"it.yaml:5:43: spec.nodes[0].allocatable.memory: unable to parse quantity's suffix: {meant}"
    )


def test_a_tab_is_called_so() -> None:
    for text, place in ((f"{HEAD}\tnodes: []\n", "5:1"), (f"{HEAD}  nodes:\n  \t- name: n\n", "6:3")):
        with pytest.raises(ScenarioError) as caught:
            loader.loads(text, "it.yaml")
        told = "is not YAML: a tab stands in the indentation; YAML allows spaces only"
        assert str(caught.value) == f"it.yaml:{place}: {told}"


SMALL = HEAD + "  nodes: [{name: n, allocatable: {cpu: 4, memory: 16}}]\n"
WARNING = "warning: spec.nodes[0].allocatable.memory: is 16 bytes: it has no unit (did you mean 16Mi or 16Gi?)"


def test_a_warning_stands_on_standard_error_and_in_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, out = tmp_path / "small.yaml", str(tmp_path / "run")
    scenario.write_text(SMALL)
    assert main(["scenarios", "validate", str(scenario)]) == 0
    assert capsys.readouterr().err == f"{scenario}:5:51: {WARNING}\n"
    main(["run", str(scenario), "--out", out])
    assert capsys.readouterr().err == f"{scenario}:5:51: {WARNING}\n"
    main(["run", str(scenario), "--out", out, "--json"])
    captured = capsys.readouterr()
    assert captured.err == ""
    (found,) = json.loads(captured.out)["warnings"]
    assert (found["line"], found["column"], found["path"]) == (5, 51, "spec.nodes[0].allocatable.memory")


def test_a_scenario_from_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(SMALL))
    main(["run", "-"])
    captured = capsys.readouterr()
    assert captured.err == f"stdin:5:51: {WARNING}\n"
    assert "kemu run runs/it-sim-0/scenario.yaml --seed 1" in captured.out
    assert main(["replay", "runs/it-sim-0"]) == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{HEAD}  nodez: []\n"))
    capsys.readouterr()
    assert main(["scenarios", "validate", "-"]) == 2
    assert capsys.readouterr().err.startswith("stdin:5:3: spec.nodez: ")


CELLS = "  runtime: {ray: {cells: "
CRASH = "  chaos: [{at: 1s, crash: {actor: store, restart: true}}]\n"


def test_a_crash_that_kills_no_process_and_more_processes_than_a_machine_has_room_for() -> None:
    shared = CELLS + "{store: control, apiServers: control}}}\n"
    assert warned(NODE + shared) == []
    (said,) = warned(NODE + shared + CRASH)
    assert said.startswith("warning: spec.runtime.ray.cells.store: shares the process control with apiServers")
    assert warned(NODE + CELLS + "{store: own, apiServers: control}}}\n" + CRASH) == []
    nodes = "  nodes: [{namePrefix: n-, count: 1000}]\n"
    (said,) = warned(nodes + CELLS + "{kubelets: own}}}\n")
    assert "makes 1000 processes" in said
    assert warned(nodes + CELLS + "{kubelets: 100}}}\n") == []
