"""What a scenario says is what the runner gets; the resolved document says the same again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.objects.conversion import convert
from kemu.errors import ScenarioError
from kemu.lab.scenario.format.keys import timing_keys
from kemu.lab.scenario.format.workloads import Arrivals, Poisson, Ramp
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import plans
from kemu.lab.scenario.playing.heartbeats import Heartbeats
from kemu.lab.scenario.scenarios import Scenario, VictimCount
from kemu.runtime.env import SECOND_NS
from tests.scenario.texts import HEAD, NODES, load, pod, problems


def amounts(resources: object) -> dict[str, str]:
    return {name: amount.string for name, amount in sorted(resources.items())}  # type: ignore[attr-defined]


def test_little_is_required() -> None:
    scenario = load("")
    assert scenario.name == "scenario"
    assert [scheduler.name for scheduler in scenario.schedulers] == ["default-scheduler"]
    assert scenario.duration_ns == 600 * SECOND_NS
    assert (scenario.runtime, scenario.seed, scenario.store.fsync) == ("sim", 0, None)
    (node,) = scenario.nodes
    assert node.message.metadata.labels["kubernetes.io/hostname"] == "node-1"
    assert amounts(node.message.status.allocatable) == {
        "cpu": "8", "ephemeral-storage": "100Gi", "memory": "32Gi", "pods": "110",
    }  # fmt: skip


def test_empty_sections_are_as_absent() -> None:
    scenario = load("events:\nworkloads:\nexpect:\nschedulers:\nmatrix:\ntiming:\nseed:\nmanifests:\nchaos:\nuntil:")
    assert same(scenario, load(""))
    assert same(scenario, loader.loads(scenario.to_yaml()))


def test_a_prefix_and_a_count_make_many_nodes() -> None:
    scenario = load("", nodes="  nodes: [{namePrefix: node-, count: 12, labels: {zone: a}, unschedulable: yes}]\n")
    assert [node.name for node in scenario.nodes] == [f"node-{n}" for n in range(1, 13)]
    assert {node.message.metadata.labels["kubernetes.io/hostname"] for node in scenario.nodes} == {
        f"node-{n}" for n in range(1, 13)
    }
    assert all(node.message.metadata.labels["zone"] == "a" for node in scenario.nodes)
    assert all(node.message.spec.unschedulable for node in scenario.nodes)


@pytest.mark.parametrize(
    ("node", "capacity", "allocatable"),
    [
        ("allocatable: {cpu: 2, memory: 1Gi, pods: 5}", ("2", "1Gi"), ("2", "1Gi")),
        ("capacity: {cpu: 4, memory: 8Gi}", ("4", "8Gi"), ("4", "8092Mi")),  # less the default eviction threshold
        (
            "capacity: {cpu: 4, memory: 8Gi}, kubelet: {kubeReserved: {cpu: 500m, memory: 1Gi}, evictionHard: {}}",
            ("4", "8Gi"),
            ("3500m", "7Gi"),
        ),
        ("capacity: {cpu: 4, memory: 8Gi}, allocatable: {cpu: 3, memory: 1Gi}", ("4", "8Gi"), ("3", "1Gi")),
    ],
)
def test_allocatable_follows_from_capacity_and_reservations(
    node: str, capacity: tuple[str, str], allocatable: tuple[str, str]
) -> None:
    scenario = load("", nodes=f"  nodes: [{{name: a, {node}}}]\n")
    status = scenario.nodes[0].message.status
    assert (status.capacity["cpu"].string, status.capacity["memory"].string) == capacity
    assert (status.allocatable["cpu"].string, status.allocatable["memory"].string) == allocatable


def test_the_kubelet_is_told_what_was_written() -> None:
    kubelet = "{maxPods: 5, nodeLeaseDurationSeconds: 400, nodeStatusReportFrequency: 10h}"
    scenario = load("", nodes=f"  nodes: [{{name: a, kubelet: {kubelet}}}]\n")
    assert scenario.nodes[0].kubelet == {
        "maxPods": 5, "nodeLeaseDurationSeconds": 400, "nodeStatusReportFrequency": "10h",
    }  # fmt: skip
    assert scenario.nodes[0].message.status.allocatable["pods"].string == "5"


@pytest.mark.parametrize(("word", "value"), [("off", False), ("on", True), ("no", False), ("'yes'", True)])
def test_switches_take_every_spelling(word: str, value: bool) -> None:
    scenario = load(f"schedulers: [{{name: a, policy: {{nomination: {word}}}}}]")
    assert scenario.schedulers[0].policy == {"nomination": value}


def test_setup_is_namespaces_then_classes_then_manifests_in_their_order() -> None:
    scenario = load(
        "priorityClasses: {high: 5, low: {value: 1, preemptionPolicy: Never}}\n"
        f"manifests: [{pod('b')}, {{apiVersion: v1, kind: Namespace, metadata: {{name: x}}}}, {pod('a')}]"
    )
    assert [manifest.message.metadata.name for manifest in scenario.setup] == ["x", "high", "low", "b", "a"]
    assert scenario.setup[2].message.preemptionPolicy == "Never"
    assert scenario.setup[3].message.metadata.namespace == "default"
    assert (scenario.setup[4].line, scenario.setup[4].path) == (6, "spec.manifests[2]")


def test_containers_without_an_image_get_one() -> None:
    (manifest,) = load(f"manifests: [{pod('a')}]").setup
    assert manifest.message.spec.containers[0].image


def test_names_may_be_left_to_the_api_server() -> None:
    generated = pod("a").replace("name: a", "generateName: a-")
    assert len(load(f"manifests: [{generated}, {generated}]").setup) == 2


def test_pods_that_run_for_a_time_are_not_started_again_unless_they_say_so() -> None:
    life = "annotations: {kemu.dev/run-seconds: '5'}"
    spec = "spec: {containers: [{name: m}]}"
    scenario = load(
        f"manifests: [{{apiVersion: v1, kind: Pod, metadata: {{name: a, {life}}}, {spec}}}, {pod('b')}]\n"
        f"workloads:\n"
        f"- {{name: w, arrivals: {{count: 1}}, pods: {{{spec}}}, life: {{runSeconds: 3}}}}\n"
        f"- {{name: v, arrivals: {{count: 1}}, pods: {{spec: {{restartPolicy: Always, containers: [{{name: m}}]}}}},"
        f" life: {{runSeconds: 3}}}}"
    )
    a, b = (manifest.message.spec for manifest in scenario.setup)
    assert a.restartPolicy == "Never"
    assert not b.HasField("restartPolicy")
    w, v = (workload.template for workload in scenario.workloads)
    assert w is not None
    assert w.spec.restartPolicy == "Never"
    assert v is not None
    assert v.spec.restartPolicy == "Always"


def test_events_are_in_the_order_of_their_times_then_of_the_file() -> None:
    scenario = load(
        "events:\n"
        "- {at: 5s, cordon: {node: node-1}}\n"
        "- {at: 1s, taint: {node: node-1, key: k, value: v, effect: NoSchedule}}\n"
        f"- {{at: 5s, create: {pod('a')}}}\n"
        "- {at: 6s, delete: {pod: a, gracePeriodSeconds: 0}}\n"
        "- {at: 6s, delete: {kind: Node, name: node-1}}\n"
        "- {at: 7s, finish: {pod: default/a, exitCode: 3}}\n"
        "- {at: 8s, patch: {kind: Pod, name: a, merge: {metadata: {labels: {x: y}}}}}\n"
        "- {at: 9s, addNode: {name: node-2}}\n"
        "- {at: 10s, removeNode: {node: node-2}}\n"
    )
    assert [(event.index, event.what) for event in scenario.events] == [
        (1, "taint"), (0, "cordon"), (2, "create"), (3, "delete"), (4, "delete"), (5, "finish"), (6, "patch"),
        (7, "addNode"), (8, "removeNode"),
    ]  # fmt: skip
    (_, _, _, first, second, finish, *_) = scenario.events
    assert first.delete is not None
    assert finish.finish is not None
    assert (first.target, first.delete.grace_period_seconds) == (("pods", "default", "a"), 0)
    assert (second.target.resource, second.target.namespace) == ("nodes", "")
    assert (finish.target.name, finish.finish.exit_code) == ("a", 3)
    assert scenario.events[7].nodes[0].name == "node-2"


def test_arrivals() -> None:
    template = "pods: {spec: {containers: [{name: m}]}}"
    scenario = load(
        "duration: 2m\n"
        "workloads:\n"
        f"- {{name: a, start: 10s, arrivals: {{poisson: {{rate: 300/m}}, until: 1m}}, {template}}}\n"
        f"- {{name: b, arrivals: {{every: {{uniform: {{min: 1s, max: 2s}}}}, count: 7}}, {template}}}\n"
        f"- {{name: c, arrivals: {{count: 3}}, {template}}}\n"
        f"- {{name: d, arrivals: {{ramp: {{from: 1/s, to: 20/s}}}}, {template}, replaceFinished: true}}\n"
    )
    second = SECOND_NS
    assert [workload.arrivals for workload in scenario.workloads] == [
        Arrivals(poisson=Poisson(rate_per_s=5.0), start_ns=10 * second, until_ns=60 * second),
        Arrivals(every={"uniform": {"min": 1.0, "max": 2.0}}, until_ns=120 * second, count=7),
        Arrivals(until_ns=120 * second, count=3),
        Arrivals(ramp=Ramp(from_per_s=1.0, to_per_s=20.0), until_ns=120 * second),
    ]
    assert [workload.replace_finished for workload in scenario.workloads] == [False, False, False, True]


def test_timing_is_in_seconds() -> None:
    scenario = load(
        "timing: {apiLatency: 2ms, bind: {choice: [{value: 1ms, weight: 9}, {value: 1s}]}, "
        "schedulingCycle: {base: 1ms, perNode: 2us}, podStart: {lognormal: {median: 1s, p99: 8s}}}"
    )
    assert scenario.timing == {
        "apiLatency": 0.002,
        "bind": {"choice": [{"value": 0.001, "weight": 9.0}, {"value": 1.0}]},
        "schedulingCycle": {"base": 0.001, "perNode": 0.000002},
        "podStart": {"lognormal": {"median": 1.0, "p99": 8.0}},
    }


def test_a_preset_of_times() -> None:
    realistic = load("timing: realistic").timing
    assert realistic["watchLatency"] == {"lognormal": {"median": 0.000573, "p99": 0.00179}}
    assert realistic["clientLimits"] == "kubernetes"
    file = timing_keys.shipped("realistic").data
    assert list(realistic) == list(file["timing"]) == list(file["sources"])
    changed = load("timing: {watchLatency: 5ms, preset: realistic}").timing
    assert changed == {**realistic, "watchLatency": 0.005}
    assert load("timing: constant").timing == load("timing: {}").timing == {}


def test_a_time_from_outside_stands_beside_the_preset_that_the_scenario_names() -> None:
    realistic = load("timing: realistic").timing
    assert load("timing: realistic", {"timing.watchLatency": "5ms"}).timing == {**realistic, "watchLatency": 0.005}


def test_a_preset_from_outside_leaves_the_times_that_the_scenario_states() -> None:
    realistic = load("timing: realistic").timing
    assert load("timing: {imagePull: 10s}", {"timing": "realistic"}).timing == {**realistic, "imagePull": 10.0}
    assert load("timing: realistic", {"timing": "constant"}).timing == {}
    assert load("timing: {imagePull: 10s}", {"timing": {"preset": "realistic"}}).timing == realistic


def test_a_lag_of_all_controllers_counts_less_than_one_of_their_own() -> None:
    def lags(timing: str) -> dict[str, Any]:
        scenario = load(
            f"timing: {timing}\n"
            "controllers: {replicaset: {}, pod-gc: {lag: 3s}}\n"
            "schedulers: [{name: default-scheduler, policy: {preemptor: rescheduler}}]"
        )
        specs = plans.controllers(scenario, Heartbeats(scenario, "sim"))
        return {spec.name: spec.config.get("lag") for spec in specs}

    found = lags("{controllerLag: 5ms}")
    assert found == {"controller/replicaset": 0.005, "controller/pod-gc": 3.0, "controller/rescheduler": None}
    assert lags("{}") == {**found, "controller/replicaset": None}


@pytest.mark.parametrize(("policy", "what", "expected"), [
    ("Honor", "drain", ["node-lifecycle", "deployment", "replicaset"]),
    ("Honor", "cordon", ["node-lifecycle", "deployment", "replicaset"]),
    ("Ignore", "drain", ["deployment", "replicaset"]),
    ("Honor", "uncordon", ["deployment", "replicaset"]),
])  # fmt: skip
def test_a_cordoned_node_gets_its_taint_where_pods_look_at_taints(policy: str, what: str, expected: list[str]) -> None:
    scenario = load(
        f"events: [{{at: 5s, {what}: {{node: node-1}}}}]\n"
        "manifests:\n"
        "- apiVersion: apps/v1\n"
        "  kind: Deployment\n"
        "  metadata: {name: web}\n"
        "  spec:\n"
        "    selector: {matchLabels: {app: web}}\n"
        "    template:\n"
        "      metadata: {labels: {app: web}}\n"
        "      spec:\n"
        "        topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule,"
        f" nodeTaintsPolicy: {policy}, labelSelector: {{matchLabels: {{app: web}}}}}}]\n"
        "        containers: [{name: main}]\n"
    )
    assert sorted(scenario.controllers) == sorted(expected)


def test_faults() -> None:
    scenario = load(
        "chaos:\n"
        "- {at: 5s, for: 10s, crash: {actor: kubelet/*}}\n"
        "- {every: {exponential: {mean: 30s}}, from: 10s, until: 1m, id: x,"
        " partition: {between: [store, [apiserver/0, 'scheduler/*']], oneWay: yes, all: yes}}\n"
    )
    crash, partition = scenario.chaos
    assert (crash.id, crash.what, crash.at_ns, crash.for_ns, crash.actors, crash.parameters, crash.choice) == (
        "crash-0", "crash", 5 * SECOND_NS, 10 * SECOND_NS,
        {"actor": (("kubelet/*",),)}, {"restart": True, "powerOff": False}, VictimCount(),
    )  # fmt: skip
    assert (partition.id, partition.at_ns, partition.every) == ("x", None, {"exponential": {"mean": 30.0}})
    assert partition.actors == {"between": (("store",), ("apiserver/0", "scheduler/*"))}
    assert partition.patterns() == ["store", "apiserver/0", "scheduler/*"]
    assert partition.parameters == {"oneWay": True}
    assert partition.choice == VictimCount(share=1.0)


def test_faults_of_machines_and_of_some() -> None:
    scenario = load(
        "chaos:\n"
        "- {at: 5s, crash: {node: 'node-*', share: 10%, restart: no}}\n"
        "- {at: 5s, crash: {actor: 'kubelet/*', count: 3}}\n"
        "- {at: 5s, partition: {between: ['kubelet/*', store], share: 0.25}}\n"
    )
    machines, kubelets, cut = scenario.chaos
    assert (machines.actors, machines.choice) == ({"node": (("kubelet/node-*",),)}, VictimCount(share=0.1))
    assert (kubelets.choice, cut.choice) == (VictimCount(3), VictimCount(share=0.25))


@pytest.mark.parametrize(
    ("choice", "matching", "taken"),
    [
        (VictimCount(), 0, 0),
        (VictimCount(), 5, 1),
        (VictimCount(3), 5, 3),
        (VictimCount(9), 5, 5),
        (VictimCount(share=1.0), 7, 7),
        (VictimCount(share=0.1), 1000, 100),
        (VictimCount(share=0.1), 4, 1),
        (VictimCount(share=0.5), 5, 3),
        (VictimCount(share=0.1), 0, 0),
    ],
)  # fmt: skip
def test_how_many_a_fault_takes(choice: VictimCount, matching: int, taken: int) -> None:
    assert choice.of(matching) == taken


@pytest.mark.parametrize(
    ("stated", "streams", "bugs"),
    [
        ("", "shared", ()),
        ("informers: listWatch", "shared", ("k8s-59848",)),
        ("informers: {streams: perKind}", "perKind", ()),
        ("informers: {begin: listWatch, streams: perKind}", "perKind", ("k8s-59848",)),
    ],
)
def test_how_informers_begin_and_watch(stated: str, streams: str, bugs: tuple[str, ...]) -> None:
    scenario = load(stated)
    assert (scenario.streams, scenario.bugs) == (streams, bugs)
    told = {
        spec.name: spec.config.get("streams") for spec in [*plans.schedulers(scenario), *plans.apiservers(scenario)]
    }
    expected = "perKind" if streams == "perKind" else None
    assert told == {"scheduler/default-scheduler/0": expected, "apiserver/0": None}


@pytest.mark.parametrize(
    ("stated", "where", "what"),
    [
        ("informers: perKind", "", "must be watchList or listWatch"),
        ("informers: {streams: each}", ".streams", "must be shared or perKind"),
        ("informers: {stream: shared}", ".stream", "did you mean streams"),
    ],
)
def test_mistakes_in_informers(stated: str, where: str, what: str) -> None:
    (problem,) = problems(stated)
    assert problem.path == f"spec.informers{where}"
    assert what in f"{problem.message} ({problem.suggestion})"


def test_overrides_are_as_if_written() -> None:
    scenario = load("seed: 1", overrides={"seed": 7, "duration": "1m", "schedulers": [{"name": "x"}]})
    assert (scenario.seed, scenario.duration_ns) == (7, 60 * SECOND_NS)
    assert scenario.schedulers[0].name == "x"
    assert "seed: 7" in scenario.to_yaml()


def test_files_are_taken_into_the_resolved_document(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text(f"{pod('a')}\n---\n{pod('b')}\n")
    (tmp_path / "config.yaml").write_text("percentageOfNodesToScore: 50\n")
    file = tmp_path / "scenario.yaml"
    file.write_text(
        HEAD + NODES + f"  manifests: [{pod('c')}, {{file: pods.yaml}}, {pod('d')}]\n"
        "  schedulers: [{name: default-scheduler, configFile: config.yaml}]\n"
        "  expect: [{pod: b, bound: {}}]\n"
    )
    scenario = loader.load(file)
    again = loader.loads(scenario.to_yaml())
    for each in (scenario, again):
        assert [manifest.message.metadata.name for manifest in each.setup] == ["c", "a", "b", "d"]
        assert each.schedulers[0].config == {"percentageOfNodesToScore": 50}
    assert again.to_yaml() == scenario.to_yaml()


def test_a_kubelet_configuration_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "kubelet.yaml").write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nclusterDNS: [10.0.0.10]\n"
        "evictionHard: {memory.available: 1Gi}\n"
    )
    file = tmp_path / "scenario.yaml"
    file.write_text(HEAD + "  nodes: [{name: a, capacity: {memory: 8Gi}, kubeletFile: kubelet.yaml}]\n")
    scenario = loader.load(file)
    (node,) = scenario.nodes
    assert node.message.status.allocatable["memory"].string == "7Gi"
    assert node.kubelet["evictionHard"] == {"memory.available": "1Gi"}
    assert same(loader.loads(scenario.to_yaml()), scenario)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("maxPods: 5\nmaxPodz: 5\n", 2, "maxPodz"),
        ("maxPods: 5\npodPidsLimit: 10\n", 2, "podPidsLimit: kemu does not simulate this field"),
        ("evictionSoft: {memory.available: 1Gi}\n", 1, "grace period must be specified"),
    ],
)
def test_a_mistake_in_a_kubelet_file_is_found_in_it(text: str, line: int, what: str, tmp_path: Path) -> None:
    (tmp_path / "kubelet.yaml").write_text(text)
    (tmp_path / "scenario.yaml").write_text(HEAD + "  nodes: [{name: a, kubeletFile: kubelet.yaml}]\n")
    with pytest.raises(ScenarioError) as caught:
        loader.load(tmp_path / "scenario.yaml")
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (str(tmp_path / "kubelet.yaml"), line)
    assert what in f"{problem.path}: {problem.message}"


def same(one: Scenario, other: Scenario) -> bool:
    """Whether they build the same cluster and expect the same of it."""

    def parts(scenario: Scenario) -> object:
        return (
            scenario.seed, scenario.duration_ns, scenario.schedulers, scenario.timing, scenario.chaos, scenario.checks,
            [(node.name, node.message.SerializeToString(deterministic=True)) for node in scenario.nodes],
            [convert.to_manifest(manifest.message) for manifest in scenario.setup],
            [(event.at_ns, event.what, event.target) for event in scenario.events],
            [(workload.name, workload.arrivals, workload.life) for workload in scenario.workloads],
            [(found.id, found.text, found.subject) for found in scenario.expectations],
        )  # fmt: skip

    return parts(one) == parts(other)


def test_the_resolved_document_of_a_large_scenario_is_small_and_the_same() -> None:
    scenario = load(
        "events: [{at: 1s, cordon: {node: node-77}}]", nodes="  nodes: [{namePrefix: node-, count: 1000}]\n"
    )
    assert len(scenario.to_yaml()) < 500
    assert same(scenario, loader.loads(scenario.to_yaml()))
