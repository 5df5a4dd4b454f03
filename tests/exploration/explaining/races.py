"""Failing scenarios that are small enough to explain by hand."""

STALE = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: stale}
spec:
  seed: 1
  duration: 1m
  timing: {schedulingCycle: 500ms}
  nodes: [{namePrefix: node-, count: 2, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}]
  schedulers: [{name: red}, {name: blue}]
  events:
    - {at: 4800ms, create: {apiVersion: v1, kind: Pod, metadata: {name: blue-pod},
       spec: {schedulerName: blue, nodeSelector: {kubernetes.io/hostname: node-1},
         containers: [{name: main, resources: {requests: {cpu: "3"}}}]}}}
    - {at: 5s, create: {apiVersion: v1, kind: Pod, metadata: {name: red-first},
       spec: {schedulerName: red, nodeSelector: {kubernetes.io/hostname: node-2},
         containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}}
    - {at: 5s, create: {apiVersion: v1, kind: Pod, metadata: {name: red-pod},
       spec: {schedulerName: red, containers: [{name: main, resources: {requests: {cpu: "3"}}}]}}}
  holds:
    - message: {from: apiserver/0, to: scheduler/red/0, event: {kind: Pod, name: blue-pod, what: bound}}
      until: {actor: scheduler/red/0, event: {pod: red-pod, what: attempted}}
  expect:
    - {id: all-run, pods: {names: [red-pod, blue-pod, red-first]}, all: {running: {before: 30s}}}
"""
"""Scheduler red hears too late that blue-pod took the room; while it decides about red-first, the news could come."""

TWICE = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: twice}
spec:
  seed: 1
  duration: 1m
  ablate: [bind-once]
  nodes: [{namePrefix: node-, count: 3, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}]
  schedulers: [{name: default-scheduler, replicas: 2}]
  timing: {schedulingCycle: 5ms}
  events:
    - {at: 5s, create: {apiVersion: v1, kind: Pod, metadata: {name: web},
       spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}}
"""
"""Two replicas bind one pod, and nobody refuses the second binding."""

CRASH = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: crash}
spec:
  seed: 1
  duration: 1m
  nodes: [{name: node-1, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}]
  events:
    - {at: 6s, create: {apiVersion: v1, kind: Pod, metadata: {name: web},
       spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}}
  chaos:
    - {id: lights-out, crash: {actor: kubelet/node-1}, at: 5s, for: 40s}
  expect:
    - {id: it-runs-soon, pod: web, running: {before: 20s}}
"""
"""The pod is bound, and its kubelet is not there."""

REQUEST = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: request}
spec:
  seed: 1
  duration: 1m
  nodes: [{name: node-1, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}]
  events:
    - {at: 5s, create: {apiVersion: v1, kind: Pod, metadata: {name: web},
       spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}}
  holds:
    - message: {from: scheduler/default-scheduler/0, to: apiserver/0, event: {kind: Pod, name: web, what: bind}}
      for: 3s
  expect:
    - {id: at-once, pod: web, bound: {before: 6s}}
"""
"""A request that is late, by itself."""

RECREATED = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: recreated}
spec:
  seed: 1
  duration: 1m
  ablate: [uid-precondition]
  nodes: [{namePrefix: node-, count: 2, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}]
  events:
    - {at: 5s, create: {apiVersion: v1, kind: Pod, metadata: {name: db-0},
       spec: {nodeSelector: {kubernetes.io/hostname: node-1},
         containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}}
    - {at: 5100ms, delete: {pod: db-0}}
    - {at: 5200ms, create: {apiVersion: v1, kind: Pod, metadata: {name: db-0},
       spec: {nodeSelector: {kubernetes.io/hostname: node-2},
         containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}}
  holds:
    - message: {from: scheduler/default-scheduler/0, to: apiserver/0, event: {kind: Pod, name: db-0, what: bind}}
      for: 197ms
  expect:
    - {id: on-its-own-node, pod: db-0, running: {node: node-2, before: 30s}}
"""
"""A binding of a pod that is gone finds another pod of that name."""
