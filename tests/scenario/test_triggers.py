"""Faults that come ``when`` something has happened in the run."""

from __future__ import annotations

from typing import Any

import pytest

import kemu
from kemu.lab.exploration.executions import Execution, execute
from kemu.lab.scenario import verdicts
from kemu.lab.scenario.playing import triggers
from tests.scenario.texts import load, problems

BASE = """
    duration: 1m
    seed: 1
    nodes:
      - {name: node-1, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
      - {name: node-2, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
    workloads:
      - name: w
        arrivals: {every: 1s, count: 4}
        pods: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
    """


def run(*chaos: str) -> Execution:
    lines = "".join(f"  - {fault}\n    " for fault in chaos)
    return execute(load(f"{BASE}chaos:\n    {lines}" if chaos else BASE, nodes=""), keep_log=True)


def times(execution: Execution, kind: str, **data: Any) -> list[float]:
    """When such events came, in ms."""
    return [
        event.time_ns / 1e6
        for event in execution.events
        if event.kind == kind and all(event.data.get(key) == value for key, value in data.items())
    ]


def bindings(execution: Execution) -> list[float]:
    pods = execution.history.pods.values()
    return sorted(fact.time_ns / 1e6 for pod in pods for fact in pod.facts if fact.what == "bound")


def test_comes_in_the_instant_in_which_it_happens() -> None:
    execution = run("{id: it, when: {pod: w-1, bound: {}}, for: 2s, pause: {actor: kubelet/node-1}}")
    begun = times(execution, "chaos.begin", id="it")
    bound = [fact.time_ns / 1e6 for fact in execution.history.pods[uid(execution, "w-1")].facts if fact.what == "bound"]
    assert begun == bound
    assert times(execution, "chaos.end", id="it") == [begun[0] + 2000]


def uid(execution: Execution, name: str) -> str:
    (found,) = execution.history.names[f"default/{name}"]
    return found


def test_after_and_nth() -> None:
    third = run("{id: it, when: {pods: {workload: w}, any: {bound: {}}, nth: 3, after: 5ms}, pause: {actor: store}}")
    assert times(third, "chaos.begin", id="it") == [bindings(third)[2] + 5]


def test_numbers_say_how_much() -> None:
    execution = run("{id: it, when: {counter: pods_bound, atLeast: 2}, for: 1s, pause: {actor: kubelet/node-2}}")
    assert times(execution, "chaos.begin", id="it") == [bindings(execution)[1]]


CRASHES = "chaos: [{at: 1s, for: 500ms, tornWrite: {actor: store}}, {at: 2s, for: 500ms, crash: {actor: scheduler/*}}]"


@pytest.mark.parametrize("until", ["bound: {}", "running: {}", "running: {node: node-1}", "waited: {atMost: 2s}"])
@pytest.mark.parametrize("chaos", ["", CRASHES])
def test_of_all_pods_it_comes_true_when_all_of_them_are_asked(
    until: str, chaos: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Triggers ask one pod that speaks against it, and all only where none is known to."""
    said = f"{BASE}until: {{pods: {{workload: w}}, all: {{{until}}}}}\n    {chaos}\n    "
    quick = execute(load(said, nodes=""))
    monkeypatch.setattr(triggers, "_is_settled_pod_by_pod", lambda subject: False)
    thorough = execute(load(said, nodes=""))
    assert quick.digest == thorough.digest


def test_all_pods_are_rarely_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    happened = verdicts.happened
    monkeypatch.setattr(verdicts, "happened", lambda *of: asked.append(of) or happened(*of))
    said = BASE.replace("every: 1s, count: 4", "count: 40").replace('cpu: "1"', 'cpu: "100m"')
    execution = execute(load(f"{said}until: {{pods: {{workload: w}}, all: {{running: {{}}}}}}\n    ", nodes=""))
    assert execution.judged.end.reason == "stopped"
    assert len(asked) < 10


def test_one_fault_follows_another() -> None:
    execution = run(
        "{id: first, at: 1500ms, for: 1s, crash: {actor: scheduler/*}}",
        "{id: second, when: {fault: first, after: 100ms}, for: 1s, crash: {node: [node-1, node-2]}}",
    )
    assert times(execution, "chaos.begin", id="first") == [1500]
    # One for each machine.
    assert times(execution, "chaos.begin", id="second") == [1600, 1600]


def test_what_is_true_already_brings_it_at_once() -> None:
    execution = run("{id: it, when: {node: node-1, added: {}}, for: 1s, pause: {actor: kubelet/node-1}}")
    assert times(execution, "chaos.begin", id="it") == [0]


def test_each_of_two_equal_ones_comes() -> None:
    same = "when: {pod: w-0, running: {}}, for: 1s"
    execution = run(f"{{{same}, pause: {{actor: kubelet/node-1}}}}", f"{{{same}, pause: {{actor: kubelet/node-2}}}}")
    assert len(set(times(execution, "chaos.begin"))) == 1
    assert len(times(execution, "chaos.begin")) == 2


def test_one_that_never_came_is_named() -> None:
    execution = run("{id: it, when: {pod: w-0, preempted: {}}, for: 1s, pause: {actor: kubelet/node-1}}")
    assert execution.verdict["faults_never_came"] == ["it"]
    came = run("{id: it, when: {pod: w-0, bound: {}}, for: 1s, pause: {actor: kubelet/node-1}}")
    assert "faults_never_came" not in came.verdict


def test_the_same_run_again_has_the_same_digest() -> None:
    fault = (
        "{when: {pods: {workload: w}, any: {running: {}}, nth: 2, after: 1ms}, for: 2s, crash: {actor: scheduler/*}}"
    )
    assert run(fault).digest == run(fault).digest != run().digest


@pytest.mark.parametrize(
    ("when", "text"),
    [
        ("{pod: w-0, never: {bound: {}}}", "must be something that happens, not something that does not"),
        (
            "{pod: w-0, phase: Running}",
            "must be something that happens during the run; a phase is judged at its end: say running or finished",
        ),
        (
            "{counter: pods_bound, atLeast: 2, nth: 2}",
            "belongs to something that happens to a pod, a node, or any of several pods; of a number say atLeast",
        ),
        ("{pod: nobody, bound: {}}", "no manifest, event or workload creates the pod nobody"),
        ("{fault: nothing}", "there is no fault nothing"),
        ("{after: 5ms}", "has no subject: one of pod, pods, node, counter, refused, event, fault or order"),
        ("{metric: waiting.p99_s}", "is not a key that may stand here"),
    ],
)
def test_what_cannot_be_waited_for(when: str, text: str) -> None:
    found = problems(f"{BASE}chaos:\n      - {{when: {when}, pause: {{actor: kubelet/node-1}}}}", nodes="")
    assert any(problem.message.startswith(text) for problem in found), found
    assert len(found) == 1


@pytest.mark.parametrize(
    ("fault", "path", "text"),
    [
        ("{pause: {actor: kubelet/node-1}}", "spec.chaos[0]", "says no time: one of at, every, when"),
        (
            "{at: 1s, when: {pod: w-0, bound: {}}, pause: {actor: kubelet/node-1}}",
            "spec.chaos[0].when",
            "cannot stand beside at",
        ),
        (
            "{when: {pod: w-0, bound: {}}, until: 5s, pause: {actor: kubelet/node-1}}",
            "spec.chaos[0].until",
            "belongs to every, not to when",
        ),
        (
            "{when: {pod: w-0, bound: {}}, restore: {actor: store, age: 1s}}",
            "spec.chaos[0].when",
            "cannot say when to restore: the backup has to be made before; say at",
        ),
    ],
)
def test_one_time_for_each_fault(fault: str, path: str, text: str) -> None:
    found = problems(f"{BASE}chaos:\n      - {fault}", nodes="")
    assert [(problem.path, problem.message) for problem in found] == [(path, text)]


def test_a_cluster_to_program_against_takes_it() -> None:
    async def main() -> str:
        async with kemu.cluster(nodes=1) as cluster:
            await cluster.chaos({"when": {"pod": "a", "bound": {}}, "for": "1s", "pause": {"actor": "kubelet/*"}})
            await cluster.create(kemu.pod("a", cpu="1"))
            await cluster.eventually(lambda: cluster.pod("a").running, within=30)
            return str(cluster.story())

    told = kemu.simulate(main)
    assert "kubelet/node-1 stands still" in told
    assert "kubelet/node-1 goes on" in told
