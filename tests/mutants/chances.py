"""Small scenarios in which it depends on chance whether a bug shows itself: how long messages take, which node a tie
falls on. Without the bug they hold whatever happens.

Each is drawn so that one event decides. The files of the mutants name it (``decides``); :mod:`tests.mutants.decisions`
measures which one it is.
"""

from __future__ import annotations

from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario


def _pod(name: str, cpu: str, spec: str = "", metadata: str = "") -> str:
    containers = f"containers: [{{name: main, resources: {{requests: {{cpu: {cpu!r}}}}}}}]"
    return f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}{metadata}}}, spec: {{{spec}{containers}}}}}"


def _running(name: str, cpu: str, node: str, seconds: str = "", spec: str = "", labels: str = "") -> str:
    metadata = f", annotations: {{kemu.dev/run-seconds: {seconds!r}}}" if seconds else ""
    return _pod(name, cpu, f"nodeName: {node}, {spec}", metadata + labels)


_ROOM = "allocatable: {cpu: '4', memory: 16Gi, pods: '110'}"
_NODE = f"nodes: [{{name: node-1, {_ROOM}}}]"
_NODES = f"nodes: [{{namePrefix: node-, count: 2, {_ROOM}}}]"
_LATE_NEWS = "timing: {watchLatency: {uniform: {min: 20ms, max: 22ms}}}"
"""Of all that a scheduler decides within 20 ms it decides the rest without having heard."""
_ANY_NEWS = "timing: {watchLatency: {uniform: {min: 1ms, max: 40ms}}}"
_ANY_REQUEST = "timing: {apiLatency: {uniform: {min: 1ms, max: 40ms}}}"
_FOR_LONG = "tolerations: [{key: going, operator: Exists, effect: NoExecute, tolerationSeconds: 300}], "
_SLOWLY = ", annotations: {kemu.dev/shutdown-seconds: '10'}"
_CLASSES = """manifests:
  - {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 100}
  - apiVersion: scheduling.k8s.io/v1
    kind: PriorityClass
    metadata: {name: polite}
    value: 100
    preemptionPolicy: Never
  - {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}, value: 1}
"""


def _full_node(second: str) -> str:
    """The pod on the only node ends at about the time at which another one comes."""
    return f"""
duration: 60s
{_NODE}
timing: {{apiLatency: {{uniform: {{min: 1ms, max: 40ms}}}}, schedulingCycle: 30ms}}
{_CLASSES}
  - {_running("first", "3", "node-1", "10", "priorityClassName: low, ")}
events:
  - {{at: 10s, create: {second}}}
expect:
  - {{id: gets-its-node, pod: next, bound: {{}}}}
  - {{id: nobody-is-preempted, counter: preemptions, equals: 0}}
"""


BEDS: dict[str, str] = {
    # Two schedulers choose a node for a pod each before they hear of one another; a node has room for one of them.
    "two-schedulers": f"""
duration: 20s
{_NODES}
{_LATE_NEWS}
schedulers: [{{name: red}}, {{name: blue}}]
events:
  - {{at: 5s, create: {_pod("red-pod", "3", "schedulerName: red, ")}}}
  - {{at: 5004ms, create: {_pod("blue-pod", "3", "schedulerName: blue, ")}}}
""",
    # One scheduler chooses a node for two pods before it hears of its first binding; a node has room for one of them.
    "two-pods": f"""
duration: 20s
{_NODES}
{_LATE_NEWS}
events:
  - {{at: 5s, create: {_pod("one", "3")}}}
  - {{at: 5004ms, create: {_pod("two", "3")}}}
expect: [{{id: nobody-is-rejected, counter: admissions_rejected, equals: 0}}]
""",
    # Two replicas of a scheduler choose a node for the same pod.
    "two-replicas": f"""
duration: 20s
{_NODES}
{_ANY_NEWS}
schedulers: [{{name: default-scheduler, replicas: 2}}]
events:
  - {{at: 5s, create: {_pod("web", "1")}}}
""",
    # The same; between the read and the write of a binding another one has time.
    "two-replicas-slow-store": f"""
duration: 20s
{_NODES}
timing: {{watchLatency: {{uniform: {{min: 1ms, max: 60ms}}}}, storeLatency: 10ms}}
apiServers: {{replicas: 2}}
schedulers: [{{name: default-scheduler, replicas: 2}}]
events:
  - {{at: 5s, create: {_pod("web", "1")}}}
""",
    # One of two nodes has a taint that the pod does not tolerate.
    "a-tainted-node": f"""
duration: 20s
nodes:
  - {{name: node-1, {_ROOM}, taints: [{{key: dedicated, value: others, effect: NoSchedule}}]}}
  - {{name: node-2, {_ROOM}}}
{_LATE_NEWS}
events:
  - {{at: 5s, create: {_pod("web", "1")}}}
expect: [{{id: on-its-node, pod: web, bound: {{node: node-2}}}}]
""",
    # One of two nodes loses the label that the pod selects.
    "a-lost-label": f"""
duration: 20s
nodes:
  - {{name: node-1, labels: {{disk: ssd}}, {_ROOM}}}
  - {{name: node-2, labels: {{disk: ssd}}, {_ROOM}}}
{_LATE_NEWS}
events:
  - {{at: 2s, patch: {{kind: Node, name: node-1, merge: {{metadata: {{labels: {{disk: hdd}}}}}}}}}}
  - {{at: 5s, create: {_pod("web", "1", "nodeSelector: {disk: ssd}, ")}}}
expect: [{{id: on-its-node, pod: web, bound: {{node: node-2}}}}]
""",
    # One of two nodes is tainted when the pod has run for some seconds.
    "a-node-that-is-tainted": f"""
duration: 30s
{_NODES}
{_LATE_NEWS}
events:
  - {{at: 5s, create: {_pod("web", "1", _FOR_LONG)}}}
  - {{at: 10s, taint: {{node: node-1, key: going, effect: NoExecute}}}}
expect: [{{id: nobody-is-evicted, counter: evictions, equals: 0}}]
""",
    # A pod of one of two nodes is being deleted, and takes its time.
    "a-terminating-pod": f"""
duration: 40s
{_NODES}
{_LATE_NEWS}
manifests:
  - {_pod("old", "3", "nodeName: node-1, terminationGracePeriodSeconds: 20, ", _SLOWLY)}
events:
  - {{at: 5s, delete: {{pod: old}}}}
  - {{at: 6s, create: {_pod("next", "3")}}}
expect: [{{id: on-its-node, pod: next, bound: {{node: node-2}}}}]
""",
    # One of two pods that could be preempted is protected by a budget.
    "a-protected-pod": f"""
duration: 40s
{_NODES}
{_LATE_NEWS}
{_CLASSES}
  - {_running("free", "3", "node-1", "", "priorityClassName: low, ")}
  - {_running("protected", "3", "node-2", "", "priorityClassName: low, ", ", labels: {app: web}")}
  - apiVersion: policy/v1
    kind: PodDisruptionBudget
    metadata: {{name: web}}
    spec: {{minAvailable: 1, selector: {{matchLabels: {{app: web}}}}}}
events:
  - {{at: 10s, create: {_pod("next", "3", "priorityClassName: high, ")}}}
expect: [{{id: the-protected-one-stays, pod: protected, never: {{preempted: {{}}}}}}]
""",
    # The connection of a kubelet breaks while a pod is on its way to the node.
    "a-broken-watch": f"""
duration: 40s
{_NODE}
{_ANY_REQUEST}
events:
  - {{at: 5s, create: {_pod("web", "3")}}}
chaos: [{{id: cut, reset: {{between: [kubelet/node-1, apiserver/0]}}, at: 5030ms}}]
expect: [{{id: runs, pod: web, running: {{}}}}]
""",
    "a-replica-set": f"""
duration: 40s
{_NODES}
{_ANY_NEWS}
events:
  - at: 5s
    create:
      apiVersion: apps/v1
      kind: ReplicaSet
      metadata: {{name: web}}
      spec:
        replicas: 2
        selector: {{matchLabels: {{app: web}}}}
        template:
          metadata: {{labels: {{app: web}}}}
          spec: {{containers: [{{name: main, resources: {{requests: {{cpu: '1'}}}}}}]}}
expect: [{{id: two-pods-are-created, counter: pods_created, equals: 2}}]
""",
    "full-node-next": _full_node(_pod("next", "3", "priorityClassName: low, ")),
    "full-node-polite": _full_node(_pod("next", "3", "priorityClassName: polite, ")),
    # A pod is deleted before or after its binding arrives.
    "a-brief-pod": f"""
duration: 90s
{_NODE}
{_ANY_NEWS}
events:
  - {{at: 5s, create: {_pod("brief", "3")}}}
  - {{at: 5020ms, delete: {{pod: brief}}}}
  - {{at: 30s, create: {_pod("next", "1")}}}
""",
    # Another pod has the name when the scheduler hears of the first one, before or after it hears of its end.
    "one-name": f"""
duration: 30s
{_NODES}
timing: {{watchLatency: {{uniform: {{min: 20ms, max: 60ms}}}}}}
events:
  - {{at: 5s, create: {_pod("db-0", "1", "nodeSelector: {kubernetes.io/hostname: node-1}, ")}}}
  - {{at: 5001ms, delete: {{pod: db-0}}}}
  - {{at: 5002ms, create: {_pod("db-0", "1", "nodeSelector: {kubernetes.io/hostname: node-2}, ")}}}
expect: [{{id: nobody-is-rejected, counter: admissions_rejected, equals: 0}}]
""",
    # The store crashes when something has been written to it, or before.
    "a-crash-at-a-creation": f"""
duration: 30s
{_NODE}
{_ANY_REQUEST}
events:
  - {{at: 5s, create: {_pod("web", "9")}}}
chaos: [{{id: crash, crash: {{actor: store}}, at: 5021ms}}]
""",
    "a-crash-before-it-is-durable": f"""
duration: 30s
{_NODE}
timing: {{apiLatency: {{uniform: {{min: 1ms, max: 60ms}}}}, fsync: 20ms, schedulingCycle: 100ms}}
events:
  - {{at: 5s, create: {_pod("web", "9")}}}
chaos: [{{id: crash, crash: {{actor: store}}, at: 5040ms}}]
""",
    "a-crash-after-a-creation": f"""
duration: 30s
{_NODE}
{_ANY_REQUEST}
events:
  - {{at: 5s, create: {_pod("web", "9")}}}
chaos: [{{id: crash, crash: {{actor: store}}, at: 5050ms}}]
""",
    "a-crash-at-a-deletion": f"""
duration: 30s
{_NODE}
{_ANY_REQUEST}
events:
  - {{at: 2s, create: {_pod("web", "9")}}}
  - {{at: 5s, delete: {{pod: web}}}}
chaos: [{{id: crash, crash: {{actor: store}}, at: 5021ms}}]
""",
}


def load(name: str, seed: int) -> Scenario:
    """The scenario of that name, with that seed."""
    lines = "".join(f"  {line}\n" for line in BEDS[name].strip().splitlines())
    text = f"apiVersion: kemu.dev/v1\nkind: Scenario\nmetadata: {{name: {name}}}\nspec:\n  seed: {seed}\n{lines}"
    return loader.loads(text, f"{name}.yaml")
