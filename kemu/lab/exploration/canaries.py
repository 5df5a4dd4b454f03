"""The canary: a planted bug that a campaign must find before anybody believes that it found nothing.

Two schedulers that do not know of each other fill one node, and its kubelet admits every pod (the ablation
``kubelet-admission``). Whoever runs it, on whatever worker, must see ``no-node-overcommitted`` fail: if not, runs do
not happen, or they are not judged.
"""

from __future__ import annotations

from kemu.lab.exploration.plans import Plan
from kemu.lab.exploration.results import RunRecord
from kemu.lab.exploration.runs import Task
from kemu.lab.exploration.sources import Source
from kemu.lab.exploration.workers import Executor

CHECK = "no-node-overcommitted"
RUNS = 2

SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: canary}
spec:
  duration: 10s
  ablate: [kubelet-admission]
  nodes:
    - {name: node-1, allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
  schedulers: [{name: red}, {name: blue}]
  timing: {schedulingCycle: 500ms}
  events:
    - at: 1s
      create:
        apiVersion: v1
        kind: Pod
        metadata: {name: red-pod}
        spec: {schedulerName: red, containers: [{name: main, resources: {requests: {cpu: "3"}}}]}
    - at: 1s
      create:
        apiVersion: v1
        kind: Pod
        metadata: {name: blue-pod}
        spec: {schedulerName: blue, containers: [{name: main, resources: {requests: {cpu: "3"}}}]}
"""


def is_found(executor: Executor, text: str = SCENARIO) -> bool:
    """Whether all runs of the canary fail as they must."""
    source = Source(text, "canary.yaml")
    tasks = [Task(number, Plan(seed=number), "canary") for number in range(RUNS)]
    return all(_fails(record) for record in executor.run(source, tasks))


def _fails(record: RunRecord) -> bool:
    return any(failure.id == CHECK for failure in record.failures)
