"""Expectations as sentences."""

from __future__ import annotations

import pytest

from kemu.lab.scenario import sentences
from kemu.lab.scenario.loading import loader

HEAD = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: sentences}
spec:
  nodes: [{name: node-1}]
  schedulers: [{name: default-scheduler, policy: {queue: fifo}}]
  chaos: [{id: outage, at: 1s, for: 1s, crash: {actor: store}}]
  matrix: {"schedulers[0].policy.queue": [fifo, priority], "schedulers[0].policy.nomination": [true, false]}
  workloads:
    - {name: web, arrivals: {count: 1}, pods: {spec: {containers: [{name: m}]}}}
  manifests:
    - {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: m}]}}
    - {apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{name: m}]}}
  expect:
    - """


@pytest.mark.parametrize(
    ("expectation", "says"),
    [
        ("{pod: a, bound: {}}", "a is bound"),
        (
            "{pod: a, bound: {node: node-1, by: default-scheduler, after: 60s, before: 80s}}",
            "a is bound to node-1 by default-scheduler between 60 s and 80 s",
        ),
        ("{pod: a, neverBound: true}", "a is never bound"),
        ("{pod: a, preempted: {by: b, before: 7s}}", "a is preempted for b before 7 s"),
        ("{pod: a, running: {node: node-1}}", "a runs on node-1"),
        ("{pod: a, never: {running: {after: 250ms}}}", "a never runs after 0.25 s"),
        ("{pod: a, nominationCleared: {}}", "a loses its nomination"),
        ("{pod: a, rejected: {reason: OutOfcpu, node: node-1}}", "a is rejected by node-1 (OutOfcpu)"),
        ("{pod: a, evicted: {node: node-1}}", "a is evicted from node-1"),
        ("{pod: a, finished: {phase: Failed}}", "a finishes as Failed"),
        ("{pod: a, scored: {node: node-1, atLeast: 5}}", "a has a score of at least 5 on node-1"),
        ("{pod: a, phase: Pending}", "a is Pending at the end"),
        ("{pod: a, waited: {atMost: 30s}}", "a waits at most 30 s"),
        ("{pods: {workload: web}, all: {bound: {}}}", "every pod of web is bound"),
        ("{pods: {workload: web}, none: {evicted: {}}}", "no pod of web is evicted"),
        ("{pods: {selector: {app: web}}, any: {oomKilled: {}}}", "some pod with app=web is OOM-killed"),
        ("{pods: {workload: web}, count: {is: {running: {}}, atLeast: 3}}", "at least 3 pods of web run"),
        ("{pods: {workload: web}, count: {is: {bound: {}}, equals: 1}}", "exactly 1 pod of web is bound"),
        ("{pods: {names: [a, b]}, count: {is: {bound: {}}, atMost: 1}}", "at most 1 of a, b is bound"),
        ("{pods: {workload: web}, count: {is: {running: {}}, atMost: 1}}", "at most 1 pod of web runs"),
        (
            "{pods: {workload: web}, count: {is: {running: {}}, atLeast: 1, atMost: 2}}",
            "between 1 and 2 pods of web run",
        ),
        ("{node: node-1, condition: {type: Ready, status: Unknown}}", "Ready of node-1 becomes Unknown"),
        ("{node: node-1, never: {tainted: {key: a.b/c}}}", "node-1 never gets the taint a.b/c"),
        ("{counter: preemptions, equals: 2}", "the counter preemptions is 2"),
        ("{counter: preemptions, atLeast: 2, atMost: 4}", "the counter preemptions is between 2 and 4"),
        ("{check: no-node-overcommitted, holds: false}", "the check no-node-overcommitted does not hold"),
        ("{metric: waiting.p99_s, priority: 1000, atMost: 4}", "waiting.p99_s of priority 1000 is at most 4"),
        (
            "{refused: {kind: Pod, name: a, verb: bind, reason: Conflict}}",
            "a request to bind Pod a is refused (Conflict) at least once",
        ),
        ("{refused: {kind: Pod, verb: evict, equals: 3}}", "a request to evict a Pod is refused 3 times"),
        ("{refused: {reason: Conflict, atMost: 0}}", "no request is refused (Conflict)"),
        ("{event: {reason: Preempted, kind: Pod}}", "an Event Preempted about a Pod is written at least once"),
        ("{event: {reason: Preempted, about: a, equals: 0}}", "no Event Preempted about a is written"),
        ("{object: {kind: Pod, name: a}, field: spec.priority, equals: 7}", "spec.priority of Pod a is 7 at the end"),
        ("{object: {kind: Pod, name: a}, exists: false}", "Pod a is not there at the end"),
        ("{fault: outage, hit: false}", "the fault outage strikes nobody"),
        ("{order: [{pod: a, bound: {}}, {pod: b, running: {}}]}", "a is bound, then b runs"),
        (
            "{pod: a, bound: {}, when: {'schedulers[0].policy.nomination': false}}",
            "a is bound with nomination=off",
        ),
        (
            (
                "{compare: {metric: waiting.max_s, of: {'schedulers[0].policy.queue': fifo, "
                "'schedulers[0].policy.nomination': true}, timesThatOf: {'schedulers[0].policy.queue': priority, "
                "'schedulers[0].policy.nomination': true}, atLeast: 2}}"
            ),
            "waiting.max_s with queue=fifo nomination=on is at least 2 times that with queue=priority nomination=on",
        ),
    ],
)
def test_an_expectation_is_a_sentence(expectation: str, says: str) -> None:
    scenario = loader.loads(HEAD + expectation + "\n", "sentences.yaml", None, {})
    of_variants = [one for _, variant in loader.variants(scenario) for one in variant.expectations]
    found = [*of_variants, *scenario.comparisons][0]
    assert sentences.of(found) == says
