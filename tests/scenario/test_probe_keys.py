"""The keys of probes and resizes: mistakes are named with what is wrong, and a right one reaches the pods."""

from __future__ import annotations

import pytest

from tests.scenario.texts import problems

POD = """
        workloads:
          - name: w
            arrivals: {count: 1}
            probes: PROBES
            pods:
              spec:
                containers:
                  - name: main
                    livenessProbe: {exec: {command: [x]}}
"""


@pytest.mark.parametrize(
    ("probes", "message"),
    [
        ("{main: {liveness: {failsFrom: 5s}}}", ""),
        ("{main: {liveness: {failsFrm: 5s}}}", "main.liveness.failsFrm: unknown; there are: succeedsAfter, failsFrom"),
        ("{main: {liveness: {failsFor: 5s}}}", "main.liveness.failsFor: needs failsFrom"),
        ("{main: {liveness: {failsFrom: 5s, failsFor: 9s, every: 8s}}}", "must be more than failsFor"),
        ("{main: {liveness: {failsFrom: soon}}}", "must be a duration such as 10s, not 'soon'"),
        ("{main: {liveness: {failureRate: 2}}}", "must be a probability between 0 and 1, not 2"),
        ("{main: {liveness: {failsAbove: {memory: 90%}}}}", "a share of a limit that the container does not have"),
        ("{main: {readiness: {failsFrom: 5s}}}", "main.readiness: the container has no readinessProbe"),
        ("{mian: {liveness: {failsFrom: 5s}}}", "the pod has no container named 'mian'"),
    ],
)
def test_what_probes_answer(probes: str, message: str) -> None:
    found = problems(POD.replace("PROBES", probes))
    assert [message in one.message for one in found] == ([True] if message else [])


def test_a_resize_states_what_changes() -> None:
    found = problems(
        """
        events:
          - {at: 1s, resize: {pod: a}}
          - {at: 1s, resize: {pod: a, containers: {main: {requests: {cpu: much}}}}}
        """
    )
    assert any(one.path == "spec.events[0].resize" and one.message == "changes nothing" for one in found)
