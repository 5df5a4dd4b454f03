"""HorizontalPodAutoscalers of autoscaling/v1: the texts are those of kube-apiserver v1.36.3."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.objects import autoscalers
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults
from kemu.messages.k8s import autoscaling_v2_pb2

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
METRICS: list[dict[str, Any]] = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}},
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "memory", "container": "c", "target": {"type": "AverageValue", "averageValue": "80Mi"},
        },
    },
    {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}}},
    {
        "type": "Object",
        "object": {
            "describedObject": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "i"},
            "metric": {"name": "rps"},
            "target": {"type": "Value", "value": "10"},
        },
    },
    {
        "type": "External",
        "external": {
            "metric": {"name": "queue", "selector": {"matchLabels": {"q": "a"}}},
            "target": {"type": "AverageValue", "averageValue": "10"},
        },
    },
    {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 70}}},
]  # fmt: skip
RECORDED = (
    '[{"type":"ContainerResource","containerResource":{"name":"memory","targetAverageValue":"80Mi","container":"c"}},'
    '{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"10"}},'
    '{"type":"Object","object":{"target":{"kind":"Ingress","name":"i","apiVersion":"networking.k8s.io/v1"},'
    '"metricName":"rps","targetValue":"10"}},'
    '{"type":"External","external":{"metricName":"queue","metricSelector":{"matchLabels":{"q":"a"}},'
    '"targetAverageValue":"10"}},'
    '{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":70}}]'
)
BEHAVIOR = (
    '{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max",'
    '"Policies":[{"Type":"Pods","Value":3,"PeriodSeconds":30}],"Tolerance":"50m"},'
    '"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max",'
    '"Policies":[{"Type":"Percent","Value":100,"PeriodSeconds":15}],"Tolerance":null}}'
)


def stored(spec: dict[str, Any]) -> autoscaling_v2_pb2.HorizontalPodAutoscaler:
    found: autoscaling_v2_pb2.HorizontalPodAutoscaler = convert.from_json(
        autoscaling_v2_pb2.HorizontalPodAutoscaler,
        {"metadata": {"name": "a", "namespace": "default", "annotations": {"x": "y"}}, "spec": spec},
    )
    defaults.apply(found)
    return found


def everything() -> autoscaling_v2_pb2.HorizontalPodAutoscaler:
    policies = [{"type": "Pods", "value": 3, "periodSeconds": 30}]
    behavior = {"scaleUp": {"policies": policies, "tolerance": "50m"}}
    return stored({"scaleTargetRef": TARGET, "maxReplicas": 5, "metrics": METRICS, "behavior": behavior})


def test_what_the_older_form_does_not_know_is_in_annotations() -> None:
    found = autoscalers.shown(everything())
    assert found.spec.targetCPUUtilizationPercentage == 70
    assert dict(found.metadata.annotations) == {
        "x": "y",
        autoscalers.METRICS: RECORDED,
        autoscalers.BEHAVIOR: BEHAVIOR,
    }


def test_nothing_is_lost_there_and_back() -> None:
    before = everything()
    back = autoscalers.newer(convert.to_json(autoscalers.shown(before)))
    wanted = convert.to_json(before)
    # The CPU comes last.
    wanted["spec"]["metrics"] = [*METRICS[1:], METRICS[0]]
    assert back["spec"] == wanted["spec"]
    assert back["metadata"] == wanted["metadata"]


@pytest.mark.parametrize("text", ["", "nonsense", "{}", "[1]"])
def test_annotations_that_cannot_be_read_count_for_nothing(text: str) -> None:
    older = {
        "metadata": {"annotations": {autoscalers.METRICS: text, autoscalers.BEHAVIOR: text}},
        "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 30},
    }
    found = autoscalers.newer(older)
    target = {"type": "Utilization", "averageUtilization": 30}
    assert found["spec"] == {
        "maxReplicas": 3,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
    }
    assert found["metadata"] == {"annotations": {}}


def test_the_status_tells_the_utilization_of_the_cpu_and_all_conditions() -> None:
    one = stored({"scaleTargetRef": TARGET, "maxReplicas": 5})
    metric = one.status.currentMetrics.add(type="Resource")
    metric.resource.name = "cpu"
    metric.resource.current.averageUtilization = 44
    metric.resource.current.averageValue.string = "44m"
    one.status.conditions.add(type="AbleToScale", status="True", reason="A", message="a < b")
    found = autoscalers.shown(one)
    assert found.status.currentCPUUtilizationPercentage == 44
    annotations = found.metadata.annotations
    assert annotations[autoscalers.STATUSES] == (
        '[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":44,"currentAverageValue":"44m"}}]'
    )
    assert annotations[autoscalers.CONDITIONS].endswith('"reason":"A","message":"a \\u003c b"}]')
