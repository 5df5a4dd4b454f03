"""What kube-apiserver v1.36.3 has against HorizontalPodAutoscalers, in its words."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.validation import kinds
from kemu.messages.k8s import autoscaling_v2_pb2

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}
RECORDED: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"maxReplicas": 0},
        [
            "spec.maxReplicas: Required value: must be set and greater than 0",
            "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
        ],
    ),
    (
        {"maxReplicas": -1},
        [
            "spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1",
            "spec.maxReplicas: Invalid value: -1: must be greater than or equal to `minReplicas`",
        ],
    ),
    (
        {"minReplicas": 0},
        [
            "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
            "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",  # noqa: E501
        ],
    ),
    ({"minReplicas": 9}, ["spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`"]),
    (
        {"scaleTargetRef": {}},
        [
            "spec.scaleTargetRef.kind: Required value",
            "spec.scaleTargetRef.name: Required value",
            'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group',
        ],
    ),
    (
        {"scaleTargetRef": {"apiVersion": "v1", "kind": "Pod", "name": "a/b"}},
        [
            "spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/'",
            'spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group',
        ],
    ),
    (
        {"scaleTargetRef": {"apiVersion": "a/b/c", "kind": "X", "name": "a"}},
        ['spec.scaleTargetRef.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
    ),
    ({"scaleTargetRef": {"kind": "ReplicationController", "name": "a"}}, []),
    (
        {"metrics": [{}]},
        [
            "spec.metrics[0].type: Required value: must specify a metric source type",
            'spec.metrics[0].type: Unsupported value: "": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"',  # noqa: E501
        ],
    ),
    (
        {"metrics": [{"type": "Foo"}]},
        [
            'spec.metrics[0].type: Unsupported value: "Foo": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"'  # noqa: E501
        ],
    ),
    (
        {"metrics": [{"type": "Resource"}]},
        ["spec.metrics[0].resource: Required value: must populate information for the given metric source"],
    ),
    (
        {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {}}}]},
        [
            "spec.metrics[0].resource.target.type: Required value: must specify a metric target type",
            'spec.metrics[0].resource.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue',  # noqa: E501
            "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",  # noqa: E501
        ],
    ),
    (
        {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Value", "value": "1"}}}]},
        [
            "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization"  # noqa: E501
        ],
    ),
    (
        {
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 0}},
                }
            ]
        },
        ["spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"],
    ),
    (
        {
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 5, "averageValue": "-1"},
                    },
                }
            ]
        },
        [
            'spec.metrics[0].resource.target.averageValue: Invalid value: "-1": must be positive',
            "spec.metrics[0].resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization",  # noqa: E501
        ],
    ),
    (
        {
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}},
                    "pods": {"metric": {"name": ""}, "target": {"type": "Value"}},
                }
            ]
        },
        [
            "spec.metrics[0].pods.metric.name: Required value: must specify a metric name",
            "spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue",
            "spec.metrics[0].pods: Forbidden: must populate the given metric source only",
        ],
    ),
    (
        {
            "metrics": [
                {
                    "type": "ContainerResource",
                    "containerResource": {"name": "", "container": "", "target": {"type": "X"}},
                }
            ]
        },
        [
            "spec.metrics[0].containerResource.name: Required value: must specify a resource name",
            "spec.metrics[0].containerResource.container: Required value: must specify a container",
            'spec.metrics[0].containerResource.target.type: Invalid value: "X": must be either Utilization, Value, or AverageValue',  # noqa: E501
            "spec.metrics[0].containerResource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",  # noqa: E501
        ],
    ),
    (
        {
            "metrics": [
                {
                    "type": "ContainerResource",
                    "containerResource": {
                        "name": "cpu",
                        "container": "A b",
                        "target": {"type": "Utilization", "averageUtilization": 3},
                    },
                }
            ]
        },
        [
            "spec.metrics[0].containerResource.container: Invalid value: \"A b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"  # noqa: E501
        ],
    ),
    (
        {
            "metrics": [
                {
                    "type": "External",
                    "external": {
                        "metric": {"name": "a/b"},
                        "target": {"type": "Value", "value": "1", "averageValue": "2"},
                    },
                }
            ]
        },
        [
            "spec.metrics[0].external.metric.name: Invalid value: \"a/b\": may not contain '/'",
            "spec.metrics[0].external.target.value: Forbidden: may not set both a target value for metric and a per-pod target",  # noqa: E501
        ],
    ),
    (
        {"metrics": [{"type": "External", "external": {"metric": {"name": "a"}, "target": {"type": "Value"}}}]},
        [
            "spec.metrics[0].external.target.averageValue: Required value: must set either a target value for metric or a per-pod target"  # noqa: E501
        ],
    ),
    (
        {
            "metrics": [
                {
                    "type": "Object",
                    "object": {
                        "describedObject": {"kind": "", "name": "", "apiVersion": "a/b/c"},
                        "metric": {"name": "a"},
                        "target": {"type": "Value"},
                    },
                }
            ]
        },
        [
            "spec.metrics[0].object.describedObject.kind: Required value",
            "spec.metrics[0].object.describedObject.name: Required value",
            'spec.metrics[0].object.describedObject.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',  # noqa: E501
            "spec.metrics[0].object.target.averageValue: Required value: must set either a target value or averageValue",  # noqa: E501
        ],
    ),
    (
        {
            "metrics": [
                {
                    "type": "Pods",
                    "pods": {"metric": {"name": "a"}, "target": {"type": "AverageValue", "averageValue": "0"}},
                }
            ]
        },
        ['spec.metrics[0].pods.target.averageValue: Invalid value: "0": must be positive'],
    ),
    (
        {
            "behavior": {
                "scaleUp": {
                    "stabilizationWindowSeconds": -1,
                    "selectPolicy": "Foo",
                    "policies": [
                        {"type": "X", "value": 0, "periodSeconds": 0},
                        {"type": "Pods", "value": 1, "periodSeconds": 1801},
                    ],
                    "tolerance": "-1",
                },
                "scaleDown": {"stabilizationWindowSeconds": 3601},
            }
        },
        [
            "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero",  # noqa: E501
            'spec.behavior.scaleUp.selectPolicy: Unsupported value: "Foo": supported values: "Disabled", "Max", "Min"',
            'spec.behavior.scaleUp.policies[0].type: Unsupported value: "X": supported values: "Percent", "Pods"',
            "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
            "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 0: must be greater than zero",
            "spec.behavior.scaleUp.policies[1].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
            'spec.behavior.scaleUp.tolerance: Invalid value: "-1": must be greater than or equal to 0',
            "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",  # noqa: E501
        ],
    ),
]


def autoscaler(spec: dict[str, Any]) -> autoscaling_v2_pb2.HorizontalPodAutoscaler:
    found: autoscaling_v2_pb2.HorizontalPodAutoscaler = convert.from_json(
        autoscaling_v2_pb2.HorizontalPodAutoscaler,
        {
            "metadata": {"name": "a", "namespace": "default"},
            "spec": {"scaleTargetRef": TARGET, "maxReplicas": 5, **spec},
        },
    )
    defaults.apply(found)
    return found


@pytest.mark.parametrize(("spec", "texts"), RECORDED)
def test_what_is_wrong_is_told_in_the_words_of_kubernetes(spec: dict[str, Any], texts: list[str]) -> None:
    causes = kinds.validate_create(autoscaler(spec))
    told = [f"{cause.field}: {cause.message}" for cause in causes]
    # Clients are told each text once.
    assert list(dict.fromkeys(told)) == texts


def test_what_was_wrong_before_may_stay() -> None:
    older = autoscaler({"scaleTargetRef": {"kind": "Deployment", "name": "w"}, "minReplicas": 0, "metrics": []})
    newer = autoscaler({"scaleTargetRef": {"kind": "Deployment", "name": "w"}, "minReplicas": 1})
    assert kinds.validate_create(newer)
    assert kinds.validate_update(newer, older) == []
