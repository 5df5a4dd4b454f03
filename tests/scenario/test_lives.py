"""What a scenario says about the life of a pod's containers, and mistakes in it."""

from __future__ import annotations

import pytest

from kemu import errors
from kemu.k8s import core_v1_pb2
from kemu.scenario.loading import loader

SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {{name: x}}
spec:
  nodes: [{{name: n}}]
  manifests:
    - apiVersion: v1
      kind: Pod
      metadata: {{name: a, annotations: {{{annotation}}}}}
      spec: {{initContainers: [{{name: setup}}], containers: [{{name: web}}, {{name: log}}]}}
"""


@pytest.mark.parametrize(
    ("annotation", "complaint", "suggestion"),
    [
        ("kemu.dev/run-seconds.wep: '5'", "the pod has no container named 'wep'", "web"),
        ("kemu.dev/run-second.web: '5'", "is not an annotation that kemu knows", ""),
        ("kemu.dev/run-seconds.web: soon", "must be a number of seconds, not 'soon'", ""),
        ("kemu.dev/exit-code.setup: '256'", "must be a whole number from 0 to 255, not '256'", ""),
        ("kemu.dev/image-pull-error: ''", "must say why the image cannot be pulled", ""),
        ("kemu.dev/pre-stop-seconds: '-1'", "must be a number of seconds that is not negative, not '-1'", ""),
    ],
)
def test_mistakes_in_the_life_of_a_container(annotation: str, complaint: str, suggestion: str) -> None:
    with pytest.raises(errors.ScenarioError) as caught:
        loader.loads(SCENARIO.format(annotation=annotation))
    (problem,) = caught.value.problems
    assert problem.path.startswith("spec.manifests[0].metadata.annotations")
    assert problem.message.startswith(complaint)
    assert suggestion in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "policy"),
    [
        ("kemu.dev/run-seconds: '5'", "Never"),
        ("kemu.dev/run-seconds.web: '5', kemu.dev/run-seconds.log: '6'", "Never"),
        ("kemu.dev/run-seconds.web: '5'", "Always"),
        ("kemu.dev/run-seconds.setup: '5', kemu.dev/image-pull-error.log: denied", "Always"),
    ],
)
def test_a_pod_whose_main_containers_all_end_is_not_restarted(annotation: str, policy: str) -> None:
    scenario = loader.loads(SCENARIO.format(annotation=annotation))
    pod = scenario.setup[-1].message
    assert isinstance(pod, core_v1_pb2.Pod)
    assert (pod.spec.restartPolicy or "Always") == policy


@pytest.mark.parametrize(
    ("kubelet", "path", "complaint"),
    [
        (
            "{crashLoopBackOff: {maxContainerRestartPeriod: 6m}}",
            "crashLoopBackOff.maxContainerRestartPeriod",
            "must be between 1s and 300s",
        ),
        (
            "{serializeImagePulls: true, maxParallelImagePulls: 2}",
            "maxParallelImagePulls",
            "cannot be greater than 1 unless serializeImagePulls is false",
        ),
    ],
)
def test_settings_that_a_kubelet_would_refuse(kubelet: str, path: str, complaint: str) -> None:
    text = SCENARIO.format(annotation="").replace("{name: n}", f"{{name: n, kubelet: {kubelet}}}")
    with pytest.raises(errors.ScenarioError) as caught:
        loader.loads(text)
    (problem,) = caught.value.problems
    assert (problem.path, problem.message) == (f"spec.nodes[0].kubelet.{path}", complaint)
