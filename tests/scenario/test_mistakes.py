"""Mistakes in a scenario: all of them at once, each with its place and what would be right."""
# ruff: noqa: E501 - one mistake a line reads best

from __future__ import annotations

from pathlib import Path

import pytest

from kemu import errors
from kemu.lab.scenario.loading import loader
from tests.scenario.texts import FIRST_LINE, HEAD, NODES, load, pod, problems

TEN_MISTAKES = """\
apiVersion: kemu.dev/v1
kind: Scenario
spec:
  sed: 1
  duration: 5
  nodes:
    - name: node-1
      allocatable: {cpu: "10", memory: 1Gii}
    - name: node-1
  priorityClasses: {high: 1000}
  manifests:
    - apiVersion: v1
      kind: Pod
      metadata: {name: a}
      spec: {priorityClassName: hihg, containers: [{name: main, resources: {requests: {cpu: "-5"}}}]}
    - {apiVersion: v1, kind: Pood, metadata: {name: b}}
  events:
    - {at: 1s}
    - at: 2s
      evict: {pod: a}
      cordon: {node: node-1}
  expect:
    - {pod: z, bound: {}}
"""

TEN_PLACES = [
    (4, 3, "spec.sed", "not a key"),
    (5, 13, "spec.duration", "has no unit"),
    (8, 40, "spec.nodes[0].allocatable.memory", "suffix"),
    (9, 13, "spec.nodes[1].name", "a second node"),
    (15, 33, "spec.manifests[0].spec.priorityClassName", "no PriorityClass"),
    (15, 93, "spec.manifests[0].spec.containers[0].resources.requests.cpu", "greater than or equal to 0"),
    (16, 30, "spec.manifests[1].kind", "unknown kind"),
    (18, 7, "spec.events[0]", "no action"),
    (21, 7, "spec.events[1].cordon", "second action"),
    (23, 13, "spec.expect[0].pod", "no manifest, event or workload"),
]


def test_ten_different_mistakes_are_ten_located_errors(tmp_path: Path) -> None:
    file = tmp_path / "ten.yaml"
    file.write_text(TEN_MISTAKES)
    with pytest.raises(errors.ScenarioError) as caught:
        loader.load(file)
    found = caught.value.problems
    assert [(problem.line, problem.column, problem.path) for problem in found] == [place[:3] for place in TEN_PLACES]
    for problem, (_, _, _, what) in zip(found, TEN_PLACES, strict=True):
        assert what in problem.message
        assert problem.file == str(file)
    assert found[0].suggestion == "did you mean seed?"
    assert str(found[0]) == f"{file}:4:3: spec.sed: is not a key that may stand here (did you mean seed?)"


def workload(rest: str, name: str = "w") -> str:
    return f"workloads: [{{name: {name}, pods: {{spec: {{containers: [{{name: m}}]}}}}, {rest}}}]"


@pytest.mark.parametrize(
    ("spec", "path", "what"),
    [
        ("seed: -1", "spec.seed", "negative"),
        ("seed: 017", "spec.seed", "octal"),
        ("seed: x", "spec.seed", "whole number"),
        ("speed: 0", "spec.speed", "more than 0"),
        ("speed: .inf", "spec.speed", "must be a number"),
        ("duration: 0s", "spec.duration", "more than 0"),
        ("runtime: kind", "spec.runtime", "sim, wall, ray or real"),
        ("runtime: {ray: {}, speed: 3}", "spec.runtime.speed", "there are: ray"),
        ("runtime: {ray: {cells: {kubelet: 100}}}", "spec.runtime.ray.cells.kubelet", "did you mean kubelets?"),
        ("runtime: {ray: {cells: {kubelets: 0}}}", "spec.runtime.ray.cells.kubelets", "at least 1"),
        ("runtime: {ray: {cells: {kubelets: [1]}}}", "spec.runtime.ray.cells.kubelets", "own, a number of actors"),
        ("runtime: {ray: {cells: {store: Own}}}", "spec.runtime.ray.cells.store", "lower-case"),
        ("runtime: {ray: {cells: {store: schedulers}}}", "spec.runtime.ray.cells.store", "write schedulers: schedulers"),
        ("schedulers: {}", "spec.schedulers", "must be a list, not a mapping"),
        ("schedulers: [{}]", "spec.schedulers[0]", "name is missing"),
        ("schedulers: [{name: A}]", "spec.schedulers[0].name", "lower-case"),
        ("schedulers: [{name: a}, {name: a}]", "spec.schedulers[1].name", "second scheduler"),
        ("schedulers: [{name: a, policy: {nomination: maybe}}]", "spec.schedulers[0].policy.nomination", "true or false"),
        ("schedulers: [{name: a, policy: {queue: lifo}}]", "spec.schedulers[0].policy.queue", "priority or fifo"),
        ("schedulers: [{name: a, config: {profiles: 3}}]", "spec.schedulers[0].config.profiles", "list"),
        ("schedulers: [{name: a, config: {profiles: [{plugins: {filter: {enabled: [{name: Nope}]}}}]}}]", "spec.schedulers[0].config.profiles[0].plugins.filter.enabled[0]", "Nope"),
        ("schedulers: [{name: a, config: {profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {x: 1}}]}]}}]", "spec.schedulers[0].config.profiles[0].pluginConfig[0].args.x", "unknown field"),
        ("schedulers: [{name: a, configFile: no.yaml}]", "spec.schedulers[0].configFile", "cannot be read"),
        ("schedulers: [{name: a, config: {}, configFile: x}]", "spec.schedulers[0].configFile", "second configuration"),
        ("apiServers: {replicas: 0}", "spec.apiServers.replicas", "at least 1"),
        ("store: {fsync: sometimes}", "spec.store.fsync", "batch, always or none"),
        ("store: {segmentBytes: 100}", "spec.store.segmentBytes", "at least 1024"),
        ("store: {etcd: 'x:1', segmentBytes: 4096}", "spec.store.segmentBytes", "of kemu's own store, not of an etcd"),
        ("store: {etcd: 'x:1', fsync: none}", "spec.store.fsync", "of kemu's own store, not of an etcd"),
        ("timing: realstic", "spec.timing", "did you mean realistic?"),
        ("timing: {preset: 5}", "spec.timing.preset", "must be constant or realistic"),
        ("timing: {prset: realistic}", "spec.timing.prset", "did you mean preset?"),
        ("timing: [realistic]", "spec.timing", "must be a mapping"),
        ("timing: {apiLatency: 1}", "spec.timing.apiLatency", "did you mean 1s?"),
        ("timing: {bind: {uniform: {min: 5ms}}}", "spec.timing.bind.uniform", "max is missing"),
        ("timing: {bind: {uniform: {min: 5ms, max: 1ms}}}", "spec.timing.bind.uniform.max", "at least"),
        ("timing: {bind: {uniform: {min: 1s, max: 2s}, normal: {mean: 1s, sd: 1s}}}", "spec.timing.bind.normal", "second"),
        ("timing: {schedulingCycle: {base: 1ms, perNod: 1us}}", "spec.timing.schedulingCycle.perNod", "not a key"),
        ("priorityClasses: {system-x: 5}", "spec.priorityClasses.system-x", "system-"),
        ("priorityClasses: {x: 2000000000}", "spec.priorityClasses.x", "maximum"),
        ("priorityClasses: {x: {}}", "spec.priorityClasses.x", "value is missing"),
        ("manifests: [{file: nowhere.yaml}]", "spec.manifests[0].file", "cannot be read"),
        (f"manifests: [{pod('a')}, {pod('a')}]", "spec.manifests[1].metadata.name", "a second Pod"),
        (f"manifests: [{pod('a', 'nodeName: node-2')}]", "spec.manifests[0].spec.nodeName", "no node node-2"),
        (f"manifests: [{pod('a', 'schedulerName: x')}]", "spec.manifests[0].spec.schedulerName", "no scheduler serves"),
        (f"manifests: [{pod('a', 'hostIPP: x')}]", "spec.manifests[0].spec.hostIPP", "unknown field"),
        (f"manifests: [{pod('A')}]", "spec.manifests[0].metadata.name", "RFC 1123"),
        ("manifests: [{apiVersion: v1, kind: Pod}]", "spec.manifests[0]", "metadata.name is missing"),
        ("manifests: [{apiVersion: v1, kind: Node, metadata: {name: node-1}}]", "spec.manifests[0].metadata.name", "second Node"),
        ("events: [{at: 11m, cordon: {node: node-1}}]", "spec.events[0].at", "after the end of the run at 10m"),
        ("events: [{cordon: {node: node-1}}]", "spec.events[0]", "at is missing"),
        ("events: [{at: 1s, cordonn: {node: node-1}}]", "spec.events[0].cordonn", "not a key"),
        ("events: [{at: 1s, cordon: {node: n}}]", "spec.events[0].cordon.node", "no node n"),
        ("events: [{at: 1s, delete: {pod: x}}]", "spec.events[0].delete.pod", "creates the pod x"),
        ("events: [{at: 1s, delete: {kind: Pod}}]", "spec.events[0].delete", "needs kind and name"),
        ("events: [{at: 1s, delete: {kind: Pood, name: x}}]", "spec.events[0].delete.kind", "not a kind"),
        ("events: [{at: 1s, taint: {node: node-1, key: k, effect: No}}]", "spec.events[0].taint.effect", "NoSchedule"),
        ("events: [{at: 1s, patch: {kind: Node, name: node-1}}]", "spec.events[0].patch", "no patch"),
        (workload("arrivals: {}"), "spec.workloads[0].arrivals", "no arrival process"),
        (workload("arrivals: {count: -1}"), "spec.workloads[0].arrivals.count", "negative"),
        (workload("arrivals: {every: 0s}"), "spec.workloads[0].arrivals.every", "more than 0"),
        (workload("arrivals: {poisson: {rate: 5}}"), "spec.workloads[0].arrivals.poisson.rate", "write 5/s"),
        (workload("start: 5s, arrivals: {every: 1s, until: 5s}"), "spec.workloads[0].arrivals.until", "not after"),
        (workload("arrivals: {count: 1}, life: {runSeconds: -1}"), "spec.workloads[0].life.runSeconds", "negative"),
        (workload("arrivals: {count: 1}", name="a.b"), "spec.workloads[0].name", "lower-case"),
        ("workloads: [{name: w, arrivals: {count: 1}}]", "spec.workloads[0]", "pods is missing"),
        ("workloads: [{name: w, trace: {format: openb, pods: x}}]", "spec.workloads[0].trace", "folder"),
        ("chaos: [{at: 1s}]", "spec.chaos[0]", "no fault"),
        ("chaos: [{crash: {actor: store}}]", "spec.chaos[0]", "one of at, every, when"),
        ("chaos: [{at: 1s, crash: {actor: kubelet/x}}]", "spec.chaos[0].crash.actor", "no actor is called"),
        ("chaos: [{at: 1s, crash: {actor: me}}]", "spec.chaos[0].crash.actor", "not an actor"),
        ("chaos: [{at: 1s, crash: {}}]", "spec.chaos[0].crash", "has no victim: one of actor, node or zone"),
        ("chaos: [{at: 1s, crash: {node: x}}]", "spec.chaos[0].crash.node", "no node with a kubelet is called x"),
        ("chaos: [{at: 1s, crash: {node: '*', actor: store}}]", "spec.chaos[0].crash.actor", "second victim beside node"),
        ("chaos: [{at: 1s, crash: {node: '*', share: 0%}}]", "spec.chaos[0].crash.share", "more than 0"),
        ("chaos: [{at: 1s, crash: {node: '*', share: 101%}}]", "spec.chaos[0].crash.share", "not more than 100%"),
        ("chaos: [{at: 1s, crash: {node: '*', share: few}}]", "spec.chaos[0].crash.share", "write 10% or 0.1"),
        ("chaos: [{at: 1s, crash: {node: '*', count: 0}}]", "spec.chaos[0].crash.count", "1"),
        ("chaos: [{at: 1s, crash: {node: '*', all: yes, count: 2}}]", "spec.chaos[0].crash.count", "beside all"),
        ("events: [{at: 1s, shutdownNode: {node: x}}]", "spec.events[0].shutdownNode.node", "there is no node x"),
        ("chaos: [{at: 1s, partition: {between: [store]}}]", "spec.chaos[0].partition.between", "at least 2"),
        ("checks: {disable: [x]}", "spec.checks.disable[0]", "no check x"),
        ("schedulers: [{name: a}]\nmatrix: {schedulers.x: [1]}", "spec.matrix[schedulers.x]", "leads nowhere"),
        ("matrix: {'nodes[1].name': [a, b]}", "spec.matrix[nodes[1].name]", "has 1 item"),
        ("matrix: {'nodes[0': [a, b]}", "spec.matrix[nodes[0]", "not a path"),
        ("matrix: {seed: 1}", "spec.matrix.seed", "must be a list"),
        ("matrix: {sed: [1, 2]}", "spec.sed", "not a key"),
        ("expect: [{bound: {}}]", "spec.expect[0].bound", "without its subject"),
        ("expect: [{counter: preemption, equals: 1}]", "spec.expect[0].counter", "no counter"),
        ("expect: [{counter: preemptions}]", "spec.expect[0]", "needs equals"),
        ("expect: [{check: nope}]", "spec.expect[0].check", "no check"),
        ("expect: [{pods: {workload: w}, all: {bound: {}}}]", "spec.expect[0].pods.workload", "no workload w"),
        ("expect: [{pods: {selector: {a: 1}}, any: {bound: {}}}]", "spec.expect[0].pods.selector", "string"),
        ("expect: [{pods: {selector: {matchExpressions: [{key: a, operator: Is}]}}, any: {bound: {}}}]", "spec.expect[0].pods.selector", "Is"),
        ("expect: [{compare: {metric: preemptions, of: {seed: 1}, timesThatOf: {seed: 2}, atLeast: 1}}]", "spec.expect[0].compare", "no matrix"),
        ("events: [{at: 1s, as: alice, cordon: {node: node-1}}]", "spec.events[0].as", "there is no user 'alice'"),
        ("users: [{name: a}, {name: a}]", "spec.users[1].name", "there is a user a already"),
        ("users: [{name: a, roles: [7]}]", "spec.users[0].roles[0]", "must be a text, not the number 7"),
        ("users: [{name: a, roles: [vew]}]", "spec.users[0].roles[0]", "no cluster has a ClusterRole 'vew'"),
        ("until: {check: pod-bound-at-most-once}", "spec.until", "happens during the run"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_path(spec: str, path: str, what: str) -> None:
    found = problems(spec)
    assert [problem.path for problem in found] == [path]
    assert what in f"{found[0].message} ({found[0].suggestion})"
    assert found[0].line == FIRST_LINE + spec.count("\n")


@pytest.mark.parametrize(
    ("statement", "path", "what"),
    [
        ("bond: {}", ".bond", "not a key"),
        ("bound: {}, running: {}", ".running", "second statement"),
        ("bound: {node: node-2}", ".bound.node", "no node"),
        ("bound: {by: red}", ".bound.by", "no scheduler"),
        ("bound: {after: 5s, before: 4s}", ".bound.after", "later than before"),
        ("bound: {after: 11m}", ".bound.after", "after the end"),
        ("bound: {at: 5s}", ".bound.at", "not a key"),
        ("never: {bound: {node: x}}", ".never.bound.node", "no node"),
        ("preempted: {by: x}", ".preempted.by", "creates the pod x"),
        ("phase: Done", ".phase", "Pending, Running"),
        ("waited: {}", ".waited", "needs atMost or atLeast"),
        ("equals: 3", ".equals", "cannot stand beside pod"),
        ("bound: {}, when: {seed: 1}", ".when", "no variant"),
    ],
)
def test_a_mistake_in_a_statement_has_its_path(statement: str, path: str, what: str) -> None:
    found = problems(f"events: [{{at: 1s, create: {pod('a')}}}]\nexpect: [{{pod: a, {statement}}}]")
    assert [problem.path for problem in found] == [f"spec.expect[0]{path}"]
    assert what in found[0].message
    assert found[0].line == FIRST_LINE + 1


@pytest.mark.parametrize(
    ("spec", "path", "what"),
    [
        (workload("arrivals: {count: 1}, usage: {memory: {ramp: {from: 1Gi, to: 2Gi}}}"), "spec.workloads[0].usage", "memory.ramp: over is missing"),
        (workload("arrivals: {count: 1}, usage: {memory: {spike: 1Gi}}"), "spec.workloads[0].usage", "memory: must be an amount or one of"),
        (workload("arrivals: {count: 1}, usage: {mem: 1Gi}"), "spec.workloads[0].usage", "mem: unknown field"),
        ("manifests: [{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {kemu.dev/gpu-card: '0,3'}}, spec: {containers: [{name: m}]}}, {apiVersion: v1, kind: Pod, metadata: {name: b, annotations: {kemu.dev/gpu-card: '1,1'}}, spec: {containers: [{name: m}]}}]", "spec.manifests[1].metadata.annotations[kemu.dev/gpu-card]", "distinct numbers"),
        ("manifests: [{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {kemu.dev/usage: 'memory: 1Gi'}}, spec: {containers: [{name: m}]}}, {apiVersion: v1, kind: Pod, metadata: {name: b, annotations: {kemu.dev/usage: x}}, spec: {containers: [{name: m}]}}]", "spec.manifests[1].metadata.annotations[kemu.dev/usage]", "must be a mapping"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_usage_has_its_path(spec: str, path: str, what: str) -> None:
    (problem,) = problems(spec)
    assert problem.path == path
    assert what in problem.message


@pytest.mark.parametrize(
    ("nodes", "path", "what"),
    [
        (
            "kubelet: {evictionHard: {memory.free: 1Gi}}",
            "spec.nodes[0].kubelet.evictionHard[memory.free]",
            "unsupported eviction signal 'memory.free'",
        ),
        (
            "kubelet: {evictionSoft: {memory.available: 1Gi}}",
            "spec.nodes[0].kubelet.evictionSoft[memory.available]",
            "grace period must be specified",
        ),
        (
            "kubelet: {evictionHard: {memory.available: 120%}}",
            "spec.nodes[0].kubelet.evictionHard[memory.available]",
            "must be <= 100%",
        ),
        ("usage: {swap: 1Gi}", "spec.nodes[0].usage", "swap: unknown field"),
        ("usage: {memory: -1}", "spec.nodes[0].usage", "memory: must not be negative"),
        ("machine: {imagefs: {inodes: 5}}", "spec.nodes[0].machine.imagefs", "capacity is missing"),
    ],
)
def test_a_mistake_about_pressure_has_its_path(nodes: str, path: str, what: str) -> None:
    (problem,) = problems("seed: 1", nodes=f"  nodes: [{{name: n, {nodes}}}]\n")
    assert problem.path == path
    assert what in problem.message


@pytest.mark.parametrize(
    ("manifest", "path", "what"),
    [
        ("{apiVersion: v1, kind: Namespace, metadata: {name: a}}", "", "must be a Pod"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: n, containers: [{name: m}]}}", ".spec.nodeName", "whose kubelet has its manifest"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: []}}", ".spec.containers", "Required"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: ok}, spec: {containers: [{name: m}]}}", ".metadata.name", "a second static pod is called ok"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: m, envFrom: [{secretRef: {name: s}}]}]}}", "", "static pods may not reference secrets"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: m}], volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}", "", "static pods may not reference persistentvolumeclaims"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_static_pod_has_its_path(manifest: str, path: str, what: str) -> None:
    right = "{apiVersion: v1, kind: Pod, metadata: {name: ok}, spec: {containers: [{name: m}]}}"
    nodes = f"  nodes: [{{name: n, kubelet: {{staticPods: [{right}, {manifest}]}}}}]\n"
    (problem,) = problems("expect: [{pod: ok-n, phase: Running}]", nodes=nodes)
    assert problem.path == f"spec.nodes[0].kubelet.staticPods[1]{path}"
    assert what in problem.message


def test_controllers_and_policies_may_be_switched_off() -> None:
    load("controllers: []\nschedulers: [{name: a, policy: {avoidEvictedNode: off}}]")


@pytest.mark.parametrize(
    ("nodes", "path", "what"),
    [
        ("  seed: 1\n", "spec", "nodes is missing"),
        ("  nodes: {name: a}\n", "spec.nodes", "must be a list"),
        ("  nodes: [{}]\n", "spec.nodes[0]", "no name"),
        ("  nodes: [{namePrefix: a-}]\n", "spec.nodes[0]", "needs count"),
        ("  nodes: [{name: a, count: 3}]\n", "spec.nodes[0].count", "namePrefix"),
        ("  nodes: [{namePrefix: A, count: 1}]\n", "spec.nodes[0].namePrefix", "cannot be the name"),
        ("  nodes: [{namePrefix: a-, count: 2}, {name: a-2}]\n", "spec.nodes[1].name", "second node"),
        ("  nodes: [{name: a, allocatable: {cpu: -1}}]\n", "spec.nodes[0].allocatable.cpu", "negative"),
        ("  nodes: [{name: a, taints: [{key: x}]}]\n", "spec.nodes[0].taints[0].effect", "NoSchedule"),
        ("  nodes: [{name: a, labels: {x: 1}}]\n", "spec.nodes[0].labels.x", "quotes"),
        ("  nodes: [{name: a, labels: {-x: b}}]\n", "spec.nodes[0].labels.-x", "name part"),
        ("  nodes: [{name: a, kubelet: {maxPod: 1}}]\n", "spec.nodes[0].kubelet.maxPod", "did you mean maxPods?"),
        ("  nodes: [{name: a, kubelet: {nodeStatusUpdateFrequency: 10}}]\n", "spec.nodes[0].kubelet.nodeStatusUpdateFrequency", "10s"),
    ],
)  # fmt: skip
def test_mistakes_in_nodes(nodes: str, path: str, what: str) -> None:
    (problem,) = problems("", nodes=nodes)
    assert problem.path == path
    assert what in f"{problem.message} ({problem.suggestion})"


def test_mistakes_in_another_file_have_their_place_there(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text(f"{pod('a')}\n---\n{pod('b', 'nodeNme: node-1')}\n")
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(HEAD + NODES + "  manifests: [{file: pods.yaml}]\n")
    with pytest.raises(errors.ScenarioError) as caught:
        loader.load(scenario)
    (problem,) = caught.value.problems
    assert problem.file == str(tmp_path / "pods.yaml")
    assert (problem.line, problem.path) == (3, "spec.nodeNme")
    assert "nodeName" in problem.suggestion


def test_a_mistake_that_only_a_variant_has_is_found_once() -> None:
    found = problems("schedulers: [{name: a}]\nmatrix: {'schedulers[0].policy.queue': [fifo, lifo], seed: [1, 2]}")
    assert [(problem.path, problem.line) for problem in found] == [("spec.schedulers[0].policy.queue", FIRST_LINE + 1)]


@pytest.mark.parametrize(
    "text", ["", "a: 1\n---\nb: 2\n", "[]", "just text", "spec: []", "spec: {nodes: 3}", "kind: Pod"]
)
def test_nonsense_is_refused_and_nothing_breaks(text: str) -> None:
    with pytest.raises(errors.ScenarioError):
        loader.loads(text)


@pytest.mark.parametrize("line", range(len(TEN_MISTAKES.splitlines())))
def test_a_scenario_without_one_of_its_lines_is_refused_and_nothing_breaks(line: int) -> None:
    lines = TEN_MISTAKES.splitlines()
    with pytest.raises(errors.ScenarioError):
        loader.loads("\n".join(lines[:line] + lines[line + 1 :]))


@pytest.mark.parametrize(
    ("spec", "path", "message", "suggestion"),
    [
        ("runtimeClassName: kat", "runtimeClassName", "there is no RuntimeClass kat", "did you mean kata?"),
        ("overhead: {cpu: 1m}", "overhead", "only a RuntimeClass may set it", "name the class in runtimeClassName"),
    ],
)
def test_an_overhead_needs_a_runtime_class_that_exists(spec: str, path: str, message: str, suggestion: str) -> None:
    runtime_class = "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: kata}, handler: kata}"
    found = problems(f"manifests: [{runtime_class}, {pod('a', spec)}]")
    assert [(one.line, one.path, one.message, one.suggestion) for one in found] == [
        (FIRST_LINE, f"spec.manifests[1].spec.{path}", message, suggestion)
    ]
    assert not problems(f"manifests: [{runtime_class}, {pod('a', 'runtimeClassName: kata')}]")


def test_a_field_that_is_missing_is_told_where_it_belongs_and_is_named_once() -> None:
    template = "{template: {spec: {containers: [{name: main}]}}}"
    job = f"{{apiVersion: batch/v1, kind: Job, metadata: {{name: j}}, spec: {template}}}"
    found = [(one.path, one.message.partition(" valid")[0]) for one in problems(f"manifests: [{job}]")]
    assert found == [("spec.manifests[0].spec.template.spec", "restartPolicy: Required value:")]


def test_fields_that_kemu_does_not_simulate_are_refused_at_their_places() -> None:
    """Beside other mistakes, in pods, templates, workloads, static pods and patches alike."""
    claim = "volumes: [{name: data, glusterfs: {endpoints: x, path: y}}]"
    pods = f"{{spec: {{{claim}, containers: [{{name: m}}]}}}}"
    template = f"{{metadata: {{labels: {{a: b}}}}, spec: {{{claim}, containers: [{{name: m}}]}}}}"
    found = problems(
        f"""
        manifests:
          - {pod("a", "securityContext: {sysctls: [{name: a.b, value: c}]}, nodeSelector: {'': a}")}
          - apiVersion: apps/v1
            kind: ReplicaSet
            metadata: {{name: a}}
            spec: {{selector: {{matchLabels: {{a: b}}}}, template: {template}}}
          - {{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {{name: a}}}}
        workloads: [{{name: w, arrivals: {{count: 1}}, pods: {pods}}}]
        events:
          - {{at: 1s, patch: {{kind: ReplicaSet, name: a, merge: {{spec: {{template: {pods}}}}}}}}}
        """
    )
    unbuilt = [(one.line, one.path) for one in found if one.message.startswith("kemu does not simulate this field: ")]
    assert unbuilt == [
        (7, "spec.manifests[0].spec.securityContext.sysctls"),
        (11, "spec.manifests[1].spec.template.spec.volumes[0].glusterfs"),
        (13, "spec.workloads[0].pods.spec.volumes[0].glusterfs"),
        (15, "spec.events[0].patch.merge.spec.template.spec.volumes[0].glusterfs"),
    ]
    others = [(one.path, one.suggestion) for one in found if (one.line, one.path) not in unbuilt]
    assert (
        "spec.manifests[2].kind",
        (
            "name it and the other controllers in spec.controllers, or change spec.replicas by events: "
            "{at: 1m, patch: {kind: Deployment, …}}, "
            "or leave all such objects out: spec.unsimulated: ignore"
        ),
    ) in others
    assert any(path == "spec.manifests[0].spec.nodeSelector" for path, _ in others)


@pytest.mark.parametrize("mounts", ["", ", volumeMounts: [{name: data, mountPath: /data}]"])
def test_a_mount_of_a_claim_that_a_template_makes_is_valid(mounts: str) -> None:
    claim = "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
    found = problems(
        f"""
        manifests:
          - apiVersion: apps/v1
            kind: StatefulSet
            metadata: {{name: db}}
            spec:
              serviceName: db
              selector: {{matchLabels: {{app: db}}}}
              template: {{metadata: {{labels: {{app: db}}}}, spec: {{containers: [{{name: main{mounts}}}]}}}}
              volumeClaimTemplates: [{{metadata: {{name: data}}, spec: {claim}}}]
        """
    )
    assert found == []


def test_a_static_pod_is_no_exception() -> None:
    static = pod("a", "volumes: [{name: data, glusterfs: {endpoints: x, path: y}}]")
    found = problems("", nodes=f"  nodes: [{{name: n, kubelet: {{staticPods: [{static}]}}}}]\n")
    assert [one.path for one in found] == ["spec.nodes[0].kubelet.staticPods[0].spec.volumes[0].glusterfs"]
