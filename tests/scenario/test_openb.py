"""The openb trace: what its rows become, and what is said about rows that are wrong."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from kemu import errors
from kemu.emulated.objects.amounts import qos, requests
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.validation import kinds
from kemu.lab.exploration import executions
from kemu.lab.scenario.format.traces import TraceFiles
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.loading.objects import manifests, openb
from kemu.lab.scenario.playing import workloads
from kemu.runtime.env import SECOND_NS
from kemu.runtime.random_streams import random_stream
from tests import traces
from tests.scenario.texts import SCENARIOS

NODES = """\
sn,cpu_milli,memory_mib,gpu,model
node-a,32000,262144,0,
node-b,96000,393216,8,V100M16
node-c,96000,393216,8,V100M16
"""
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p-0,12000,16384,1,1000,,LS,Running,100,1100,200
p-1,6000,12288,1,460,V100M16|V100M32,BE,Failed,0,50,
p-2,1000,1024,0,0,,Guaranteed,Succeeded,100,200,100
p-3,1000,1024,4,1000,,Burstable,Running,300,300,300
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    return tmp_path


def read(folder: Path, start_ns: int = 0, **options: float) -> openb.Read:
    return openb.read(folder, TraceFiles(pods="pods.csv", nodes="nodes.csv", **options), start_ns)  # type: ignore[arg-type]


def pods(found: openb.Read) -> list[object]:
    return [found.trace.templates[index] for index in found.trace.template]


def test_nodes_offer_devices_and_thousandths_of_them(folder: Path) -> None:
    found = read(folder)
    assert [name for name, _ in found.nodes] == ["node-a", "node-b", "node-c"]
    (_, plain), (_, gpus), (_, same) = found.nodes
    assert gpus is same
    assert requests.resource_list(gpus.status.allocatable) == {
        "cpu": 96000, "memory": 393216 * 2**20, "pods": 110, openb.GPU: 8, openb.GPU_MILLI: 8000,
    }  # fmt: skip
    assert gpus.metadata.labels[openb.GPU_MODEL] == "V100M16"
    assert openb.GPU not in plain.status.allocatable
    assert openb.GPU_MODEL not in plain.metadata.labels


def test_the_api_server_would_take_them(folder: Path) -> None:
    for pod in pods(read(folder)):
        pod.metadata.name = "x"  # type: ignore[attr-defined]
        defaults.apply(pod)  # type: ignore[arg-type]
        assert kinds.validate_create(pod) == []  # type: ignore[arg-type]


def test_pods_come_in_the_order_of_their_creation(folder: Path) -> None:
    found = read(folder)
    assert [when // SECOND_NS for when in found.trace.at_ns] == [0, 100, 100, 300]
    assert found.trace.run_s == (50.0, 900.0, 100.0, 0.0)


def test_pods_request_shares_of_devices(folder: Path) -> None:
    shared, whole, none, four = pods(read(folder))
    assert requests.pod_requests(shared) == {"cpu": 6000, "memory": 12288 * 2**20, openb.GPU_MILLI: 460}
    assert requests.pod_requests(whole)[openb.GPU] == 1
    assert requests.pod_requests(whole)[openb.GPU_MILLI] == 1000
    assert openb.GPU_MILLI not in requests.pod_requests(none)
    assert requests.pod_requests(four)[openb.GPU_MILLI] == 4000


def test_a_model_becomes_node_affinity(folder: Path) -> None:
    shared, whole, *_ = pods(read(folder))
    affinity = shared.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution  # type: ignore[attr-defined]
    (term,) = affinity.nodeSelectorTerms
    (wanted,) = term.matchExpressions
    assert (wanted.key, wanted.operator, list(wanted.values)) == (openb.GPU_MODEL, "In", ["V100M16", "V100M32"])
    assert not whole.spec.HasField("affinity")  # type: ignore[attr-defined]


def test_classes_of_service_become_priorities_and_limits(folder: Path) -> None:
    found = pods(read(folder))
    assert [pod.spec.priorityClassName for pod in found] == [  # type: ignore[attr-defined]
        "openb-best-effort", "openb-latency-sensitive", "openb-guaranteed", "openb-burstable",
    ]  # fmt: skip
    assert [qos.computed_qos_class(pod) for pod in found] == ["Burstable", "Guaranteed", "Guaranteed", "Burstable"]
    assert [pod.metadata.annotations.get(manifests.EXIT_CODE) for pod in found] == ["1", None, None, None]  # type: ignore[attr-defined]


def test_times_may_be_compressed(folder: Path) -> None:
    found = read(folder, speed_up=100, start_ns=5 * SECOND_NS)
    assert [when / SECOND_NS for when in found.trace.at_ns] == [5, 6, 6, 8]
    assert found.trace.run_s == (0.5, 9.0, 1.0, 0.0)
    assert read(folder, speed_up=100, run_speed_up=10).trace.run_s == (5.0, 90.0, 10.0, 0.0)


def test_only_the_first_pods(folder: Path) -> None:
    assert len(read(folder, limit=2).trace.at_ns) == 2


@pytest.mark.parametrize(
    ("file", "old", "new", "line", "path", "what"),
    [
        ("pods.csv", "12000", "-1", 2, "cpu_milli", "whole number"),
        ("pods.csv", "12000", "9" * 5000, 2, "cpu_milli", "too large"),
        ("pods.csv", "p-1,6000", "p-1,6000,7", 3, "", "12 cells"),
        ("pods.csv", ",LS,", ",XX,", 2, "qos", "must be one of"),
        ("pods.csv", "100,200,100", "100,99,100", 4, "deletion_time", "before"),
        ("pods.csv", "460", "1460", 3, "gpu_milli", "at most 1000"),
        ("pods.csv", "gpu_spec", "spec", 1, "", "no column gpu_spec"),
        ("nodes.csv", "node-c", "node-b", 4, "sn", "second node"),
        ("nodes.csv", "node-c", "node_c", 4, "sn", "subdomain"),
        ("nodes.csv", "V100M16", "V 1", 3, "model", "label"),
        ("nodes.csv", ",8,", ",x,", 3, "gpu", "whole number"),
    ],
)
def test_a_bad_row_has_its_place(folder: Path, file: str, old: str, new: str, line: int, path: str, what: str) -> None:
    text = (folder / file).read_text()
    (folder / file).write_text(text.replace(old, new, 1))
    with pytest.raises(errors.ScenarioError) as caught:
        read(folder)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.path) == (str(folder / file), line, path)
    assert what in problem.message


def test_all_bad_rows_are_told_up_to_a_limit(folder: Path) -> None:
    (folder / "pods.csv").write_text(PODS.splitlines()[0] + "\n" + "p,x,x,0,0,,LS,Running,0,1,0\n" * 100)
    with pytest.raises(errors.ScenarioError) as caught:
        read(folder)
    assert len(caught.value.problems) == 2 * openb.MAX_PROBLEMS + 1
    assert "too many mistakes" in caught.value.problems[-1].message


def test_a_missing_file_is_told(folder: Path) -> None:
    (folder / "nodes.csv").unlink()
    with pytest.raises(errors.ScenarioError, match=r"nodes\.csv:1:1: cannot be read"):
        read(folder)


SCENARIO = """\
apiVersion: kemu.dev/v1
kind: Scenario
spec:
  workloads:
    - name: t
      trace: {format: openb, nodes: nodes.csv, pods: pods.csv, speedUp: 10, kubelet: {nodeStatusReportFrequency: 10h}}
      life: {shutdownSeconds: 2}
  expect:
    - {pod: t-3, bound: {node: node-b}}
"""


def test_a_scenario_takes_nodes_classes_and_pods_from_it(folder: Path) -> None:
    scenario = loader.loads(SCENARIO, data_dir=folder)
    assert [node.name for node in scenario.nodes] == ["node-a", "node-b", "node-c"]
    assert scenario.nodes[1].message.metadata.labels["kubernetes.io/hostname"] == "node-b"
    assert scenario.nodes[1].kubelet == {"nodeStatusReportFrequency": "10h"}
    assert [manifest.message.value for manifest in scenario.setup] == [4000, 3000, 2000, 1000]
    stream = workloads.Stream(workloads.plain(scenario.workloads[0]), 1, functools.partial(random_stream, 1))
    assert stream.next_ns() == 0
    number, pod = stream.arrival()
    assert (number, pod.metadata.name) == (0, "t-0")
    assert dict(pod.metadata.annotations) == {
        manifests.EXIT_CODE: "1", manifests.RUN_SECONDS: "5", manifests.SHUTDOWN_SECONDS: "2",
    }  # fmt: skip


def test_the_resolved_document_insists_on_the_same_files(folder: Path) -> None:
    text = loader.loads(SCENARIO, data_dir=folder).to_yaml()
    assert loader.loads(text, data_dir=folder).to_yaml() == text
    (folder / "pods.csv").write_text(PODS.replace("460", "470"))
    with pytest.raises(errors.ScenarioError, match=r"the files in .* are others"):
        loader.loads(text, data_dir=folder)


def test_a_pod_beyond_the_trace_does_not_exist(folder: Path) -> None:
    with pytest.raises(errors.ScenarioError, match="t makes 4 pods"):
        loader.loads(SCENARIO.replace("t-3", "t-4"), data_dir=folder)


def test_the_shipped_scenario_reads_every_row() -> None:
    scenario = loader.load(SCENARIOS / "traces" / "openb.yaml", data_dir=traces.folder())
    whole = traces.is_whole()
    assert len(scenario.nodes) == (1523 if whole else traces.SAMPLE_NODES)
    trace = scenario.workloads[0].trace
    assert trace is not None
    assert len(trace.at_ns) == (8152 if whole else traces.SAMPLE_PODS)


AS_DEVICES = """\
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: gpus}
spec:
  seed: 1
  duration: 30m
  workloads: [{name: w, trace: {format: openb, nodes: nodes.csv, pods: pods.csv, gpus: devices}}]
  expect:
    - {id: all-are-bound, pods: {workload: w}, count: {is: {bound: {}}, equals: 4}}
"""


def test_gpus_are_devices_where_the_trace_says_so(folder: Path) -> None:
    """Two shares of 460 go to one device or to two, a whole device to nobody else."""
    found = openb.read(folder, TraceFiles(format="openb", pods="pods.csv", nodes="nodes.csv", gpus="devices"))
    assert {name: (one.count, one.attributes, one.shared) for name, one in found.devices.items()} == {
        name: (8, {"model": "V100M16"}, True) for name in ("node-b", "node-c")
    }
    assert openb.GPU not in found.nodes[1][1].status.allocatable
    shared, whole, none, four = pods(found)
    named = {one.metadata.name: one.spec.spec.devices.requests[0].exactly for one in found.claims}
    wanted = [
        named[pod.spec.resourceClaims[0].resourceClaimTemplateName]  # type: ignore[attr-defined]
        for pod in (shared, whole, four)
    ]
    assert [(one.count, one.capacity.requests["milli"].string) for one in wanted] == [
        (1, "460"),
        (1, "1000"),
        (4, "1000"),
    ]
    assert [one.cel.expression for one in wanted[0].selectors] == [
        'device.attributes["gpu.nvidia.com"].model in ["V100M16", "V100M32"]'
    ]
    assert not none.spec.resourceClaims  # type: ignore[attr-defined]
    assert not shared.spec.HasField("affinity")  # type: ignore[attr-defined]


@pytest.mark.thorough
def test_pods_of_the_trace_claim_their_gpus(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(AS_DEVICES)
    execution = executions.execute(loader.load(file, data_dir=folder))
    assert execution.outcome == executions.HOLDS, execution.failures
    grants = [one for one in execution.history.claims.now.values() if one.status.HasField("allocation")]
    assert execution.history.pods
    assert all(one.status.allocation.devices.results for one in grants)
