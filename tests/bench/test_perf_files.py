"""``kemu bench scheduler-perf``: configurations as scheduler_perf has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.errors import KemuError
from kemu.lab.bench.schedulers import perf_files

CONFIGURATION = """
- name: Claims
  workloadTemplate:
  - {opcode: createNodes, nodeTemplatePath: templates/node.yaml, countParam: $nodes}
  - {opcode: createResourceDriver, driverName: test-driver, nodes: "with-dra-*", maxClaimsPerNode: 4}
  - {opcode: createAny, templatePath: templates/class.yaml}
  - {opcode: createAny, templatePath: templates/claim.yaml, namespace: init, countParam: $taken}
  - {opcode: allocResourceClaims, namespace: init}
  - {opcode: createAny, templatePath: templates/claim.yaml, namespace: test, count: 2}
  - {opcode: createPods, namespace: test, count: 4, podTemplatePath: templates/pod.yaml, collectMetrics: true}
  workloads:
  - {name: roomy, labels: [performance], threshold: {dra: 0.5}, params: {nodes: 2, taken: 3}}
  - {name: steady, params: {nodes: 1, taken: 2}}
  - {name: crowded, params: {nodes: 1, taken: 5}}
- name: Blocked
  workloadTemplate:
  - {opcode: createNodes, nodeTemplatePath: templates/node.yaml, count: 1}
  - {opcode: createPods, namespace: blocked, count: 4, podTemplatePath: templates/blocker.yaml}
  - {opcode: startCollectingMetrics, namespaces: [blocked], labelSelector: {type: waiting}}
  - opcode: createPods
    namespace: blocked
    count: 2
    podTemplatePath: templates/waiting.yaml
    skipWaitToCompletion: true
  - {opcode: barrier, stageRequirement: Attempted, labelSelector: {type: waiting}}
  - opcode: deletePods
    namespace: blocked
    labelSelector: {type: blocker}
    deletePodsPerSecond: 10
    skipWaitToCompletion: true
  - {opcode: barrier, labelSelector: {type: waiting}}
  - {opcode: stopCollectingMetrics}
  workloads:
  - {name: hints, labels: [short], threshold: 3, featureGates: {SchedulerQueueingHints: true}}
  - {name: without-hints, labels: [short], threshold: 4, featureGates: {SchedulerQueueingHints: false}}
- name: Churn
  workloadTemplate:
  - {opcode: createNodes, nodeTemplatePath: templates/node.yaml, count: 2}
  - {opcode: churn, mode: recreate, number: 1, intervalMilliseconds: 10, templatePaths: [templates/node.yaml]}
  - opcode: createPodSets
    count: 2
    namespacePrefix: set
    createPodsOp: {opcode: createPods, count: 3, podTemplatePath: templates/waiting.yaml, collectMetrics: true}
  - {opcode: createPods, namespace: gated, count: 2, podTemplatePath: templates/gated.yaml, skipWaitToCompletion: true}
  - {opcode: barrier, stageRequirement: Attempted}
  - {opcode: updateAny, namespace: gated, count: 2, templatePath: templates/released.yaml, updatePerSecond: 100}
  - {opcode: barrier}
  workloads:
  - {name: two-sets}
- name: Volumes
  workloadTemplate:
  - opcode: createNodes
    nodeTemplatePath: templates/node.yaml
    count: 1
    nodeAllocatableStrategy: {csiNodeAllocatable: {ebs.csi.aws.com: {count: 2}}}
  - opcode: createPods
    countParam: $pods
    podTemplatePath: templates/waiting.yaml
    persistentVolumeTemplatePath: templates/pv.yaml
    persistentVolumeClaimTemplatePath: templates/pvc.yaml
    collectMetrics: true
  workloads:
  - {name: two, params: {pods: 2}}
  - {name: too-many, params: {pods: 3}}
"""
TEMPLATES = {
    "node": """
apiVersion: v1
kind: Node
metadata: {generateName: with-dra-}
status: {capacity: {pods: "110", cpu: "4", memory: 32Gi}, conditions: [{type: Ready, status: "True"}], phase: Running}
""",
    "class": """
apiVersion: resource.k8s.io/v1beta2
kind: DeviceClass
metadata: {name: test-class}
spec: {selectors: [{cel: {expression: device.driver == "test-driver"}}]}
""",
    "claim": """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: "claim-{{.Index}}"}
spec: {devices: {requests: [{name: req-0, exactly: {deviceClassName: test-class}}]}}
""",
    "pod": """
apiVersion: v1
kind: Pod
metadata: {name: "pod-{{.Index}}"}
spec:
  containers: [{name: pause, image: pause, resources: {claims: [{name: resource}]}}]
  resourceClaims: [{name: resource, resourceClaimName: "claim-{{ DivideInt .Index 2 }}"}]
""",
    "blocker": """
apiVersion: v1
kind: Pod
metadata: {name: "blocker-{{.Index}}", labels: {type: blocker}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: pause, image: pause, resources: {requests: {cpu: "1"}}}]
""",
    "waiting": """
apiVersion: v1
kind: Pod
metadata: {generateName: waiting-, labels: {type: waiting}}
spec: {containers: [{name: pause, image: pause, resources: {requests: {cpu: "1"}}}]}
""",
    "gated": """
apiVersion: v1
kind: Pod
metadata: {name: "gated-{{.Index}}"}
spec: {schedulingGates: [{name: hold}], containers: [{name: pause, image: pause}]}
""",
    "released": """
apiVersion: v1
kind: Pod
metadata: {name: "gated-{{.Index}}"}
spec: {containers: [{name: pause, image: pause}]}
""",
    "pv": """
apiVersion: v1
kind: PersistentVolume
spec: {accessModes: [ReadOnlyMany], capacity: {storage: 1Gi}, csi: {driver: ebs.csi.aws.com}}
""",
    "pvc": """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {annotations: {pv.kubernetes.io/bind-completed: "true"}}
spec: {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}
""",
}


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "templates").mkdir()
    for name, text in TEMPLATES.items():
        (tmp_path / "templates" / f"{name}.yaml").write_text(text)
    (tmp_path / "performance-config.yaml").write_text(CONFIGURATION)
    return str(tmp_path / "performance-config.yaml")


def test_workloads_are_those_for_performance_or_those_that_are_named(file: str) -> None:
    assert [one["workload"] for one in perf_files.workloads(file)] == ["Claims/roomy"]
    assert perf_files.workloads(f"{file}#steady") == [{"file": file, "workload": "Claims/steady"}]
    with pytest.raises(KemuError, match="no workload 'x'; there are Claims/roomy, Claims/steady"):
        perf_files.workloads(f"{file}#x")


def test_workloads_of_a_folder_are_chosen_by_labels_and_those_that_are_the_same_here_are_one(file: str) -> None:
    found = perf_files.workloads(str(Path(file).parent), ["short"])
    assert [one["workload"] for one in found] == ["Blocked/hints"]
    assert len(perf_files.workloads(file, ["all"])) == 7


def test_pods_that_wait_are_bound_when_what_blocks_them_is_deleted(file: str) -> None:
    figures = perf_files.measure(file, "Blocked/hints")
    assert (figures["pods"], figures["threshold"], figures["same_here"]) == (2, 4, 2)
    Path(file).write_text(CONFIGURATION.replace("labelSelector: {type: blocker}", "labelSelector: {type: other}"))
    with pytest.raises(KemuError, match="barrier: only 0 of 2 pods of blocked were bound"):
        perf_files.measure(file, "Blocked/hints")


def test_nodes_come_and_go_beside_sets_of_pods_and_gates_are_lifted(file: str) -> None:
    assert perf_files.measure(file, "Churn/two-sets")["pods"] == 6
    rarely = CONFIGURATION.replace("intervalMilliseconds: 10,", "intervalMilliseconds: 10000000,")
    Path(file).write_text(
        rarely.replace("count: 2, templatePath: templates/rel", "count: 1, templatePath: templates/rel")
    )
    with pytest.raises(KemuError, match="barrier: only 1 of 2 pods of gated were bound"):
        perf_files.measure(file, "Churn/two-sets")


def test_a_node_takes_as_many_volumes_as_its_driver_says(file: str) -> None:
    assert perf_files.measure(file, "Volumes/two")["pods"] == 2
    with pytest.raises(KemuError, match="createPods: only 2 of 3 pods of namespace-1 were bound"):
        perf_files.measure(file, "Volumes/too-many")


def test_evaluations_of_selectors_are_counted(file: str) -> None:
    figures = perf_files.measure(file, "Claims/roomy")
    assert figures["cel_evaluations"] > 0


def test_claims_are_allocated_and_pods_share_them(file: str) -> None:
    figures = perf_files.measure(file, "Claims/roomy")
    assert figures["pods"] == 4
    assert figures["threshold"] == 0.5
    assert figures["ratio"] == pytest.approx(figures["pods_per_s"] / 0.5, abs=0.1)


def test_more_claims_than_devices_are_an_error(file: str) -> None:
    with pytest.raises(KemuError, match="allocResourceClaims: no node has devices for claim-4"):
        perf_files.measure(file, "Claims/crowded")


def test_gangs_by_a_file_of_ones_own() -> None:
    assert (
        perf_files.measure(str(Path(__file__).parent / "gangs" / "performance-config.yaml"), "Gangs/fast")["pods"] == 16
    )


def test_a_cluster_is_kept_steady_for_a_while(file: str) -> None:
    steady = CONFIGURATION.replace(
        "namespace: test, count: 4,", "namespace: test, count: 2, steadyState: true, duration: 1s,"
    )
    Path(file).write_text(steady)
    assert perf_files.measure(file, "Claims/steady")["pods"] > 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            ("opcode: allocResourceClaims", "opcode: restartNodes"),
            r"workloadTemplate\[4\]: the operation 'restartNodes' is not known",
        ),
        (("countParam: $taken", "countParam: $given"), r"createAny: the workload has no parameter \$given"),
        (("templates/class.yaml", "templates/none.yaml"), "templates/none.yaml: no such template"),
    ],
)
def test_what_is_wrong_is_said(file: str, change: tuple[str, str], says: str) -> None:
    Path(file).write_text(CONFIGURATION.replace(*change))
    with pytest.raises(KemuError, match=says):
        perf_files.measure(file, "Claims/roomy")
