"""HorizontalPodAutoscalers of autoscaling/v1, which are stored as those of v2; the annotations are those that
kube-apiserver v1.36.3 wrote."""

from __future__ import annotations

import json
from typing import Any

from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.kinds import autoscalers
from kemu.messages.k8s import autoscaling_v2_pb2
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster

OLD = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
NEW = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 55}}}
SPEC: dict[str, Any] = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
    "minReplicas": 1,
    "maxReplicas": 3,
    "metrics": [
        CPU,
        {
            "type": "Resource",
            "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}},
        },
        {
            "type": "Pods",
            "pods": {
                "metric": {"name": "pp", "selector": {"matchLabels": {"a": "b"}}},
                "target": {"type": "AverageValue", "averageValue": "3"},
            },
        },
        {
            "type": "Object",
            "object": {
                "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
                "target": {"type": "Value", "value": "3"},
                "metric": {"name": "oo"},
            },
        },
        {
            "type": "External",
            "external": {"metric": {"name": "ee"}, "target": {"type": "AverageValue", "averageValue": "7"}},
        },
        {
            "type": "ContainerResource",
            "containerResource": {
                "name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 5},
                "container": "c",
            },
        },
    ],
}
METRICS = (
    '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"100Mi"}},{"type":"Pods","pods":{"metricName":'
    '"pp","targetAverageValue":"3","selector":{"matchLabels":{"a":"b"}}}},{"type":"Object","object":{"target":{"kind":'
    '"Service","name":"s","apiVersion":"v1"},"metricName":"oo","targetValue":"3"}},{"type":"External","external":{'
    '"metricName":"ee","targetAverageValue":"7"}},{"type":"ContainerResource","containerResource":{"name":"cpu",'
    '"targetAverageUtilization":5,"container":"c"}}]'
)


def test_what_the_old_form_has_no_fields_for_stands_in_annotations_and_comes_back() -> None:
    document = {"metadata": {"name": "a"}, "spec": SPEC}
    stored = convert.from_json(autoscaling_v2_pb2.HorizontalPodAutoscaler, document)
    shown = autoscalers.shown(stored)
    assert shown.spec.targetCPUUtilizationPercentage == 55
    assert json.loads(shown.metadata.annotations[autoscalers.METRICS]) == json.loads(METRICS)
    again = convert.to_json(autoscalers.stored(shown))
    # The metric of the old field comes last (as in Kubernetes).
    assert again["spec"].pop("metrics") == [*SPEC["metrics"][1:], CPU]
    assert again["spec"] == {name: value for name, value in SPEC.items() if name != "metrics"}
    assert again["metadata"] == {"name": "a"}


def test_behavior_and_conditions_survive() -> None:
    behavior = {
        "scaleDown": {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}
    }
    conditions = [{"type": "AbleToScale", "status": "True", "reason": "a"}]
    document = {"spec": {"maxReplicas": 3, "behavior": behavior}, "status": {"conditions": conditions}}
    stored = convert.from_json(autoscaling_v2_pb2.HorizontalPodAutoscaler, document)
    shown = autoscalers.shown(stored)
    assert json.loads(shown.metadata.annotations[autoscalers.BEHAVIOR]) == {
        "ScaleDown": {"SelectPolicy": "Max", "Policies": [{"Type": "Percent", "Value": 100, "PeriodSeconds": 15}]}
    }
    again = autoscalers.stored(shown)
    assert again.spec.behavior == stored.spec.behavior
    assert again.status.conditions == stored.status.conditions


def test_clients_write_and_read_both_forms() -> None:
    async def main(cluster: Cluster) -> None:
        spec = {name: value for name, value in SPEC.items() if name != "metrics"}
        body = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}}
        made = await cluster.http.post(OLD, json={**body, "spec": {**spec, "targetCPUUtilizationPercentage": 60}})
        assert (made.status_code, made.json()["apiVersion"]) == (201, "autoscaling/v1")
        assert made.json()["spec"]["targetCPUUtilizationPercentage"] == 60
        (metric,) = (await cluster.http.get(f"{NEW}/a")).json()["spec"]["metrics"]
        assert metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 60}
        patch = json.dumps({"spec": {"targetCPUUtilizationPercentage": 70, "maxReplicas": 9}})
        for kind in ("merge", "strategic-merge"):
            headers = {"content-type": f"application/{kind}-patch+json"}
            changed = (await cluster.http.patch(f"{OLD}/a", content=patch, headers=headers)).json()["spec"]
            assert (changed["targetCPUUtilizationPercentage"], changed["maxReplicas"]) == (70, 9)
        listed = (await cluster.http.get(OLD)).json()
        assert (listed["kind"], listed["apiVersion"]) == ("HorizontalPodAutoscalerList", "autoscaling/v1")
        assert listed["items"][0]["spec"]["targetCPUUtilizationPercentage"] == 70

    gateway_cluster.run(main)
