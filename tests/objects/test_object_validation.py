"""What is refused, with the reasons and texts of Kubernetes."""

from __future__ import annotations

import copy
import inspect
import re
from typing import Any

import pytest

from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.facts import go_types
from kemu.emulated.objects.validation import causes, core, kinds, placement, small_groups, storage, volume_sources
from kemu.emulated.objects.validation.devices import claims
from kemu.emulated.objects.validation.pod_specs import containers, pods, probes, security
from kemu.emulated.objects.validation.pod_specs import volumes as pod_volumes
from kemu.emulated.objects.validation.workloads import apps, batch
from kemu.errors import Cause, Invalid
from kemu.messages.k8s import core_v1_pb2

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "default", "labels": {"app": "web"}},
    "spec": {
        "volumes": [{"name": "tmp", "emptyDir": {}}],
        "containers": [
            {
                "name": "main",
                "image": "web:1",
                "ports": [{"name": "http", "containerPort": 80}],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}},
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            }
        ],
    },
}

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
KEY_NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def object_with(base: dict[str, Any], **changes: Any) -> Any:
    """The object of a manifest with some places changed: ``spec__containers__0__name="b"``; None removes."""
    data = copy.deepcopy(base)
    for place, value in changes.items():
        *steps, last = (int(step) if step.isdigit() else step for step in place.split("__"))
        inner: Any = data
        for step in steps:
            inner = inner[step] if isinstance(step, int) else inner.setdefault(step, {})
        if value is None:
            del inner[last]
        else:
            inner[last] = value
    return message_of(data)


def message_of(data: dict[str, Any]) -> Any:
    """A defaulted object; quantities that the converter would refuse are put in afterwards."""
    message = convert.from_manifest(data)
    defaults.apply(message)
    return message


def texts(found: list[Cause]) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in found]


def test_a_good_pod_passes() -> None:
    assert kinds.validate_create(object_with(POD)) == []


RESTARTS_ALL = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
C = "spec.containers[0]"
REQUESTS = "spec__containers__0__resources__requests"
AFFINITY = "spec__affinity__nodeAffinity__requiredDuringSchedulingIgnoredDuringExecution__nodeSelectorTerms"
TERM = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # Metadata.
        ({"metadata__name": None}, ["metadata.name: Required value: name or generateName is required"]),
        ({"metadata__name": "A_b"}, [f'metadata.name: Invalid value: "A_b": {SUBDOMAIN}']),
        (
            {"metadata__name": "a" * 254},
            [f'metadata.name: Invalid value: "{"a" * 254}": must be no more than 253 characters'],
        ),
        ({"metadata__namespace": "a.b"}, ['metadata.namespace: Invalid value: "a.b": must not contain dots']),
        ({"metadata__namespace": None}, ["metadata.namespace: Required value"]),
        ({"metadata__labels": {"-a": "b"}}, [f'metadata.labels: Invalid value: "-a": {KEY_NAME}']),
        (
            {"metadata__labels": {"a": "b" * 64}},
            [f'metadata.labels: Invalid value: "{"b" * 64}": must be no more than 63 bytes'],
        ),
        (
            {"metadata__annotations": {"a": "b" * 262144}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
        ),
        (
            {"metadata__ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]},
            ['metadata.ownerReferences.uid: Invalid value: "": must not be empty'],
        ),
        ({"metadata__generateName": "x_"}, [f'metadata.generateName: Invalid value: "x_": {SUBDOMAIN}']),
        (
            {
                "metadata__ownerReferences": [
                    {"apiVersion": "v1", "kind": "Node", "name": name, "uid": "1", "controller": True}
                    for name in ("x", "y")
                ]
            },
            [
                (
                    'metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Node","name":"x","uid":"1",'
                    '"controller":true},{"apiVersion":"v1","kind":"Node","name":"y","uid":"1","controller":true}]: '
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    "Node/x and Node/y"
                )
            ],
        ),
        # Containers.
        ({"spec__containers": []}, ["spec.containers: Required value"]),
        ({"spec__containers__0__name": ""}, [f"{C}.name: Required value"]),
        ({"spec__containers__0__name": "Main"}, [f'{C}.name: Invalid value: "Main": {LABEL}']),
        ({"spec__containers__0__image": None}, [f"{C}.image: Required value"]),
        (
            {"spec__containers__0__image": "web:1 "},
            [f'{C}.image: Invalid value: "web:1 ": must not have leading or trailing whitespace'],
        ),
        (
            {"spec__initContainers": [{"name": "main", "image": "x"}]},
            ['spec.initContainers[0].name: Duplicate value: "main"'],
        ),
        (
            {"spec__initContainers": [{"name": "first", "image": "x", "livenessProbe": {}}]},
            [
                (
                    "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without "
                    "restartPolicy=Always"
                )
            ],
        ),
        (
            {"spec__containers__0__restartPolicyRules": [RESTARTS_ALL]},
            [f"{C}.restartPolicy: Required value: must specify restartPolicy when restart rules are used"],
        ),
        (
            {
                "spec__containers__0__restartPolicy": "Never",
                "spec__containers__0__restartPolicyRules": [
                    {"action": "Stop", "exitCodes": {"operator": "Xn", "values": [1]}},
                    {"action": "Restart"},
                ],
            },
            [
                (
                    f'{C}.restartPolicyRules[0].action: Unsupported value: "Stop": supported values: "Restart", '
                    '"RestartAllContainers"'
                ),
                (
                    f'{C}.restartPolicyRules[0].exitCodes.operator: Unsupported value: "Xn": supported values: '
                    '"In", "NotIn"'
                ),
                f"{C}.restartPolicyRules[1].exitCodes: Required value: must be specified",
            ],
        ),
        (
            {
                "spec__containers__0__restartPolicy": "Never",
                "spec__containers__0__restartPolicyRules": [RESTARTS_ALL] * 21,
            },
            [f"{C}.restartPolicyRules: Too many: 21: must have at most 20 items"],
        ),
        (
            {"spec__containers__0__imagePullPolicy": "Sometimes"},
            [
                (
                    f'{C}.imagePullPolicy: Unsupported value: "Sometimes": supported values: '
                    '"Always", "IfNotPresent", "Never"'
                )
            ],
        ),
        (
            {"spec__containers__0__ports": [{"containerPort": 80, "hostPort": 70000}, {}]},
            [
                f"{C}.ports[0].hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
                f"{C}.ports[1].containerPort: Required value",
            ],
        ),
        (
            {"spec__containers__0__ports": [{"containerPort": 1, "protocol": "tcp", "name": "a--1"}]},
            [
                f'{C}.ports[0].name: Invalid value: "a--1": must not contain consecutive hyphens',
                f'{C}.ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"',
            ],
        ),
        (
            {
                "spec__containers__0__ports": [
                    {"containerPort": 1, "hostPort": 8080, "name": "http"},
                    {"containerPort": 2, "hostPort": 8080, "name": "http"},
                ]
            },
            [
                f'{C}.ports[1].name: Duplicate value: "http"',
                f'{C}.ports[1].hostPort: Duplicate value: "TCP//8080"',
            ],
        ),
        (
            {"spec__hostNetwork": True, "spec__containers__0__ports": [{"containerPort": 80, "hostPort": 81}]},
            [
                f"{C}.ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true",
            ],
        ),
        ({"spec__containers__0__volumeMounts__0__name": "x"}, [f'{C}.volumeMounts[0].name: Not found: "x"']),
        (
            {"spec__volumes__0__hostPath": {"path": "/"}},
            [
                "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
                f'{C}.volumeMounts[0].name: Not found: "tmp"',
            ],
        ),
        # Resources.
        (
            {REQUESTS: {"cpu": "-1"}},
            [f'{C}.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
        ),
        (
            {REQUESTS: {"cpu": "3"}},
            [f'{C}.resources.requests: Invalid value: "3": must be less than or equal to cpu limit of 2'],
        ),
        (
            {REQUESTS: {"gpu": "1"}},
            [
                (
                    f'{C}.resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully '
                    "qualified"
                ),
                f'{C}.resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers',
            ],
        ),
        (
            {REQUESTS: {"pods": "1"}},
            [f'{C}.resources.requests[pods]: Invalid value: "pods": must be a standard resource for containers'],
        ),
        (
            {REQUESTS: {"example.com/gpu": "500m"}, "spec__containers__0__resources__limits": {"example.com/gpu": "1"}},
            [
                f'{C}.resources.requests[example.com/gpu]: Invalid value: "500m": must be an integer',
                f'{C}.resources.requests: Invalid value: "500m": must be equal to example.com/gpu limit of 1',
            ],
        ),
        (
            {REQUESTS: {"example.com/gpu": "1"}},
            [f"{C}.resources.limits: Required value: Limit must be set for non overcommitable resources"],
        ),
        (
            {"spec__containers__0__resources": {"limits": {"hugepages-2Mi": "4Mi"}}},
            [f"{C}.resources: Forbidden: HugePages require cpu or memory"],
        ),
        (
            {"spec__overhead": {"cpu": "-1m"}},
            ['spec.overhead.limits[cpu]: Invalid value: "-1m": must be greater than or equal to 0'],
        ),
        (
            {"spec__resources": {"requests": {"cpu": "500m", "example.com/gpu": "1"}}},
            [
                (
                    'spec.resources.requests[example.com/gpu]: Unsupported value: "example.com/gpu": supported values: '
                    '"cpu", "hugepages-", "memory"'
                ),
                "spec.resources.limits: Required value: Limit must be set for non overcommitable resources",
                (
                    'spec.resources.requests[cpu]: Invalid value: "500m": must be greater than or equal to aggregate '
                    "container requests of 1"
                ),
            ],
        ),
        # The rest of the spec.
        (
            {"spec__restartPolicy": "Sometimes"},
            [
                'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
            ],
        ),
        (
            {"spec__activeDeadlineSeconds": 0},
            ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
        ),
        ({"spec__nodeName": "N1"}, [f'spec.nodeName: Invalid value: "N1": {SUBDOMAIN}']),
        (
            {"spec__preemptionPolicy": "Maybe"},
            ['spec.preemptionPolicy: Unsupported value: "Maybe": supported values: "PreemptLowerPriority", "Never"'],
        ),
        (
            {"spec__schedulingGates": [{"name": "a"}, {"name": "a"}], "spec__nodeName": "n"},
            [
                'spec.schedulingGates[1]: Duplicate value: "a"',
                "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
            ],
        ),
        (
            {
                "spec__tolerations": [
                    {"operator": "Equal"},
                    {"key": "a", "operator": "Exists", "value": "b"},
                    {"key": "a", "operator": "Is"},
                    {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5},
                    {"key": "a", "effect": "Never"},
                ]
            },
            [
                (
                    'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is '
                    'empty, which means "match all values and all keys"'
                ),
                "spec.tolerations[1].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
                'spec.tolerations[2].operator: Unsupported value: "Is": supported values: "Equal", "Exists"',
                (
                    "spec.tolerations[3].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when "
                    "`tolerationSeconds` is set"
                ),
                (
                    'spec.tolerations[4].effect: Unsupported value: "Never": supported values: '
                    '"NoSchedule", "PreferNoSchedule", "NoExecute"'
                ),
            ],
        ),
        (
            {AFFINITY: []},
            [f"{TERM[:-3]}: Required value: must have at least one node selector term"],
        ),
        (
            {
                AFFINITY: [
                    {
                        "matchExpressions": [
                            {"key": "a", "operator": "In"},
                            {"key": "a", "operator": "Exists", "values": ["b"]},
                            {"key": "a", "operator": "Gt", "values": ["1", "2"]},
                            {"key": "a", "operator": "Like", "values": ["b"]},
                        ],
                        "matchFields": [{"key": "spec.x", "operator": "In", "values": ["a"]}],
                    }
                ]
            },
            [
                (
                    f"{TERM}.matchExpressions[0].values: Required value: must be specified when `operator` is "
                    "'In' or 'NotIn'"
                ),
                (
                    f"{TERM}.matchExpressions[1].values: Forbidden: may not be specified when `operator` is "
                    "'Exists' or 'DoesNotExist'"
                ),
                (
                    f"{TERM}.matchExpressions[2].values: Required value: must be specified single value when "
                    "`operator` is 'Lt' or 'Gt'"
                ),
                f'{TERM}.matchExpressions[3].operator: Invalid value: "Like": not a valid selector operator',
                f'{TERM}.matchFields[0].key: Invalid value: "spec.x": not a valid field selector key',
            ],
        ),
        (
            {
                "spec__affinity__podAntiAffinity__preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 101, "podAffinityTerm": {"topologyKey": "zone", "matchLabelKeys": ["a"]}}
                ]
            },
            [
                (
                    "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
                    "Invalid value: 101: must be in the range 1-100"
                ),
                (
                    "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm."
                    "matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"
                ),
            ],
        ),
        (
            {"spec__topologySpreadConstraints": [{**SPREAD, "maxSkew": 0}, SPREAD]},
            [
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
                (
                    "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "
                    '"{zone, DoNotSchedule}"'
                ),
            ],
        ),
        (
            {"spec__topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 1}]},
            [
                (
                    "spec.topologySpreadConstraints[0].minDomains: Invalid value: 1: can only use minDomains if "
                    "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
                )
            ],
        ),
        (
            {"spec__hostnameOverride": "Not." + 61 * "x", "spec__hostNetwork": True, "spec__setHostnameAsFQDN": True},
            [
                "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
                "spec.hostnameOverride: Forbidden: may not be specified when hostNetwork is true",
                "spec.hostnameOverride: Too long: may not be more than 64 bytes",
                f'spec.hostnameOverride: Invalid value: "Not.{61 * "x"}": {SUBDOMAIN}',
            ],
        ),
    ],
)
def test_pods_that_are_refused(changes: dict[str, Any], expected: list[str]) -> None:
    assert texts(kinds.validate_create(object_with(POD, **changes))) == expected


def test_a_bad_quantity_is_refused_where_it_stands() -> None:
    pod = object_with(POD)
    pod.spec.containers[0].resources.requests["memory"].string = "1Gii"
    defaults.apply(pod)
    defaults.prepare_create(pod)
    (cause,) = kinds.validate_create(pod)
    assert cause.field == "spec.containers[0].resources.requests[memory]"
    assert cause.reason == "FieldValueInvalid"
    assert cause.message.startswith('Invalid value: "1Gii": unable to parse quantity\'s suffix')


def test_the_error_of_an_object_lists_its_causes() -> None:
    pod = object_with(POD, metadata__name="A", spec__containers__0__name="")
    error = causes.error(pod, kinds.validate_create(pod))
    assert isinstance(error, Invalid)
    assert str(error) == (
        f'Pod "A" is invalid: [metadata.name: Invalid value: "A": {SUBDOMAIN}, spec.containers[0].name: Required value]'
    )
    assert [cause.reason for cause in error.causes] == ["FieldValueInvalid", "FieldValueRequired"]
    assert (error.kind, error.name) == ("Pod", "A")


# Updates ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, []),
        ({}, {"metadata__labels": {"app": "x"}, "spec__containers__0__image": "web:2"}, []),
        ({}, {"spec__tolerations": [{"key": "a", "operator": "Exists"}]}, []),
        ({}, {"spec__activeDeadlineSeconds": 10}, []),
        ({"spec__activeDeadlineSeconds": 10}, {"spec__activeDeadlineSeconds": 5}, []),
        ({"spec__terminationGracePeriodSeconds": -5}, {"spec__terminationGracePeriodSeconds": 1}, []),
        ({"spec__schedulingGates": [{"name": "a"}, {"name": "b"}]}, {"spec__schedulingGates": [{"name": "b"}]}, []),
        (
            {"spec__tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}]},
            {"spec__tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]},
            [],
        ),
        ({"metadata__uid": "1"}, {"metadata__uid": "2"}, ['metadata.uid: Invalid value: "2": field is immutable']),
        (
            {"metadata__creationTimestamp": "2000-01-01T00:00:00Z"},
            {"metadata__creationTimestamp": "2000-01-01T00:00:01Z"},
            ['metadata.creationTimestamp: Invalid value: "2000-01-01T00:00:01Z": field is immutable'],
        ),
        (
            {"metadata__deletionTimestamp": "2000-01-01T00:00:00Z"},
            {"metadata__deletionTimestamp": "2000-01-01T00:00:00Z", "metadata__finalizers": ["a/b"]},
            [
                (
                    "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
                    'found new finalizers []string{"a/b"}'
                )
            ],
        ),
        (
            {"spec__activeDeadlineSeconds": 10},
            {"spec__activeDeadlineSeconds": 11},
            ["spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous value"],
        ),
        (
            {"spec__activeDeadlineSeconds": 10},
            {},
            [
                "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
            ],
        ),
        (
            {"spec__tolerations": [{"key": "a", "operator": "Exists"}]},
            {"spec__tolerations": [{"key": "b", "operator": "Exists"}]},
            ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
        ),
        (
            {},
            {"spec__schedulingGates": [{"name": "b"}]},
            [
                "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'b'",
            ],
        ),
        (
            {},
            {"spec__initContainers": [{"name": "b", "image": "x"}]},
            ["spec.initContainers: Forbidden: pod updates may not add or remove containers"],
        ),
        (
            {"spec__schedulingGates": [{"name": "a"}], "spec__nodeSelector": {"a": "b"}},
            {"spec__schedulingGates": [{"name": "a"}], "spec__nodeSelector": {"a": "b", "c": "d"}},
            [],
        ),
        (
            {"spec__schedulingGates": [{"name": "a"}], "spec__nodeSelector": {"a": "b"}},
            {"spec__schedulingGates": [{"name": "a"}], "spec__nodeSelector": {"c": "d"}},
            [
                (
                    'spec.nodeSelector: Invalid value: {"c":"d"}: only additions to spec.nodeSelector are allowed '
                    "(no mutations or deletions)"
                )
            ],
        ),
        (
            {"spec__schedulingGates": [{"name": "a"}]},
            {AFFINITY: [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]},
            [],
        ),
        (
            {
                "spec__schedulingGates": [{"name": "a"}],
                AFFINITY: [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}],
            },
            {AFFINITY: [{"matchExpressions": [{"key": "b", "operator": "Exists"}]}]},
            [
                (
                    f'{TERM}: Invalid value: {{"MatchExpressions":[{{"Key":"b","Operator":"Exists","Values":null}}],'
                    '"MatchFields":null}: '
                    "only additions are allowed (no mutations or deletions)"
                )
            ],
        ),
    ],
)
def test_updates_of_pods(before: dict[str, Any], after: dict[str, Any], expected: list[str]) -> None:
    old, new = object_with(POD, **before), object_with(POD, **after)
    found = texts(kinds.validate_update(new, old))
    # What is wrong with the metadata is told twice, by rest.BeforeUpdate and by the strategy.
    in_metadata = [text for text in expected if text.startswith("metadata.")]
    assert found == in_metadata + expected


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"spec__nodeName": "n1"}, "nodeName"),
        ({"spec__priority": 5}, "priority"),
        ({"spec__terminationGracePeriodSeconds": 1}, "terminationGracePeriodSeconds"),
        ({"spec__nodeSelector": {"a": "b"}}, "nodeSelector"),
        ({REQUESTS: {"cpu": "2"}}, "containers"),
        ({AFFINITY: [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}, "affinity"),
    ],
)
def test_the_rest_of_a_pod_may_not_change(changes: dict[str, Any], field: str) -> None:
    (cause,) = kinds.validate_update(object_with(POD, **changes), object_with(POD))
    assert (cause.field, cause.reason) == ("spec", "FieldValueForbidden")
    assert cause.message.startswith(
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`"
    )
    assert cause.message.endswith(f"changed: `spec.{field}`")


def test_what_go_does_not_tell_apart_is_no_change() -> None:
    probe = {"httpGet": {"port": 80, "host": ""}, "initialDelaySeconds": 0}
    old = object_with(POD, spec__containers__0__readinessProbe=probe)
    new = object_with(POD, spec__containers__0__readinessProbe={"httpGet": {"port": 80}})
    assert old != new
    assert kinds.validate_update(new, old) == []


def test_an_update_does_not_change_what_it_is_given() -> None:
    old = object_with(POD)
    new = object_with(POD, spec__containers__0__image="web:2", spec__nodeName="n")
    copies = copy.deepcopy(old), copy.deepcopy(new)
    kinds.validate_update(new, old)
    assert (old, new) == copies


def test_status_updates_of_pods() -> None:
    old = object_with(
        POD,
        spec__restartPolicy="Never",
        status={"qosClass": "Burstable", "containerStatuses": [{"name": "main", "state": {"terminated": {}}}]},
    )
    new = copy.deepcopy(old)
    new.status.phase = "Running"
    new.spec.nodeName = "n1"
    new.status.nominatedNodeName = "N"
    new.status.qosClass = "Guaranteed"
    new.status.containerStatuses[0].state.running.SetInParent()
    new.status.containerStatuses[0].state.ClearField("terminated")
    assert texts(kinds.validate_status_update(new, old)) == [
        "status.nodeName: Forbidden: may not be changed directly",
        f'status.nominatedNodeName: Invalid value: "N": {SUBDOMAIN}',
        'status.qosClass: Invalid value: "Guaranteed": field is immutable',
        "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state",
    ]
    new.CopyFrom(old)
    new.status.phase = "Failed"
    assert kinds.validate_status_update(new, old) == []


# Other kinds --------------------------------------------------------------------------------------------------------

RESERVED = (
    "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error:"
)
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "4"}}}
PRIORITY_CLASS = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "b", "namespace": "default"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "n1", "namespace": "kube-node-lease"},
    "spec": {"leaseDurationSeconds": 40},
}
EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s", "namespace": "default"},
    "spec": {"ports": [{"port": 80}]},
}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q", "namespace": "default"},
    "spec": {"hard": {"pods": "10"}},
}
RUNTIME_CLASS = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "r"}, "handler": "kata"}
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "web:1"}]},
}
REPLICA_SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "r", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j", "namespace": "default"},
    "spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}},
}
CONTROLLER = {
    "apiVersion": "v1",
    "kind": "ReplicationController",
    "metadata": {"name": "c", "namespace": "default"},
    "spec": {"template": TEMPLATE},
}

GOOD = [
    NODE, PRIORITY_CLASS, BUDGET, NAMESPACE, LEASE, EVENT, SERVICE, QUOTA, RUNTIME_CLASS, REPLICA_SET, JOB, CONTROLLER,
    {**REPLICA_SET, "kind": "Deployment"}, {**REPLICA_SET, "kind": "DaemonSet"}, {**REPLICA_SET, "kind": "StatefulSet"},
    {**PRIORITY_CLASS, "metadata": {"name": "system-node-critical"}, "value": 2_000_001_000},
    {**PRIORITY_CLASS, "value": 1_000_000_000},
]  # fmt: skip


@pytest.mark.parametrize("data", GOOD, ids=lambda data: data["kind"])
def test_good_objects_pass(data: dict[str, Any]) -> None:
    obj = message_of(data)
    defaults.prepare_create(obj)
    assert kinds.validate_create(obj) == []
    assert kinds.validate_update(obj, obj) == []
    assert kinds.validate_status_update(obj, obj) == []


@pytest.mark.parametrize(
    ("base", "changes", "expected"),
    [
        (NODE, {"metadata__namespace": "default"}, ["metadata.namespace: Forbidden: not allowed on this type"]),
        (
            NODE,
            {"status__capacity": {"cpu": "-1"}},
            [
                'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
                'status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0',
            ],
        ),
        (
            NODE,
            {"spec__taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]},
            [
                (
                    'metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoSchedule",'
                    '"TimeAdded":null}: taints must be unique by key and effect pair'
                )
            ],
        ),
        (NODE, {"spec__taints": [{"key": "a"}]}, ["metadata.taints[0].effect: Required value"]),
        (
            NODE,
            {"spec__taints": [{"key": "a", "effect": "Gone"}]},
            [
                (
                    'metadata.taints[0].effect: Unsupported value: "Gone": supported values: '
                    '"NoSchedule", "PreferNoSchedule", "NoExecute"'
                )
            ],
        ),
        (
            PRIORITY_CLASS,
            {"value": 1_000_000_001},
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        ),
        (
            PRIORITY_CLASS,
            {"metadata__name": "system-mine"},
            [f"{RESERVED} system-mine is not a known system priority class"],
        ),
        (
            PRIORITY_CLASS,
            {"metadata__name": "system-node-critical"},
            [f"{RESERVED} value of system-node-critical PriorityClass must be 2000001000"],
        ),
        (
            PRIORITY_CLASS,
            {"preemptionPolicy": "Maybe"},
            ['preemptionPolicy: Unsupported value: "Maybe": supported values: "PreemptLowerPriority", "Never"'],
        ),
        (
            BUDGET,
            {"spec__maxUnavailable": 1, "spec__selector": None},
            [
                (
                    'spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":1,'
                    '"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable '
                    "cannot be both set"
                )
            ],
        ),
        (
            BUDGET,
            {"spec__minAvailable": -1},
            ["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            BUDGET,
            {"spec__minAvailable": "101%"},
            ['spec.minAvailable: Invalid value: "101%": must not be greater than 100%'],
        ),
        (
            BUDGET,
            {"spec__minAvailable": "1"},
            [
                (
                    'spec.minAvailable: Invalid value: "1": a valid percent string must be a numeric string followed '
                    "by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
                )
            ],
        ),
        (
            BUDGET,
            {"spec__selector__matchExpressions": [{"key": "a", "operator": "In"}]},
            [
                (
                    "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is "
                    "'In' or 'NotIn'"
                )
            ],
        ),
        (NAMESPACE, {"metadata__name": "a.b"}, ['metadata.name: Invalid value: "a.b": must not contain dots']),
        (
            LEASE,
            {"spec__leaseDurationSeconds": 0},
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
        ),
        (
            EVENT,
            {"involvedObject__namespace": "other"},
            ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
        ),
        (SERVICE, {"spec__ports": []}, ["spec.ports: Required value"]),
        (
            QUOTA,
            {"spec__hard": {"pods": "-1"}},
            ['spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0'],
        ),
        (RUNTIME_CLASS, {"handler": "a.b"}, ['handler: Invalid value: "a.b": must not contain dots']),
        (
            REPLICA_SET,
            {"spec__selector": None},
            [
                "spec.selector: Required value",
                (
                    'spec.template.metadata.labels: Invalid value: {"app":"web"}: '
                    "`selector` does not match template `labels`"
                ),
            ],
        ),
        (
            REPLICA_SET,
            {"spec__selector": {}},
            ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
        ),
        (
            REPLICA_SET,
            {"spec__selector__matchLabels": {"app": "x"}},
            [
                (
                    'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template '
                    "`labels`"
                )
            ],
        ),
        (
            REPLICA_SET,
            {"spec__replicas": -1, "spec__template__spec__restartPolicy": "Never"},
            [
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
            ],
        ),
        (
            JOB,
            {"spec__template__spec__restartPolicy": None},
            [
                'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
                "spec.selector: Required value",
                "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
            ],
        ),
        (
            CONTROLLER,
            {"spec__selector": {"app": "x"}},
            [
                (
                    'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template '
                    "`labels`"
                )
            ],
        ),
    ],
)
def test_other_objects_that_are_refused(base: dict[str, Any], changes: dict[str, Any], expected: list[str]) -> None:
    assert texts(kinds.validate_create(object_with(base, **changes))) == expected


@pytest.mark.parametrize(
    ("base", "changes", "expected"),
    [
        (PRIORITY_CLASS, {"value": 5}, ["value: Forbidden: may not be changed in an update."]),
        (
            PRIORITY_CLASS,
            {"preemptionPolicy": "Never"},
            ['preemptionPolicy: Invalid value: "Never": field is immutable'],
        ),
        (PRIORITY_CLASS, {"description": "x", "globalDefault": True}, []),
        (BUDGET, {"spec__minAvailable": "50%"}, []),
        (BUDGET, {"spec__maxUnavailable": 1, "spec__minAvailable": None}, []),
        (NODE, {"spec__taints": [{"key": "a"}]}, ["metadata.taints[0].effect: Required value"] * 2),
        (RUNTIME_CLASS, {"handler": "runc"}, ['handler: Invalid value: "runc": field is immutable']),
        (
            REPLICA_SET,
            {"spec__selector__matchLabels": {"app": "web", "b": "c"}, "spec__template__metadata__labels__b": "c"},
            ['spec.selector: Invalid value: {"matchLabels":{"app":"web","b":"c"}}: field is immutable'],
        ),
        (
            JOB,
            {"spec__completionMode": "Indexed"},
            [
                # Kubernetes checks it as a new one, too.
                *[
                    "spec.selector: Required value",
                    "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
                ]
                * 2,
                'spec.completionMode: Invalid value: "Indexed": field is immutable',
            ],
        ),
        (LEASE, {"spec__holderIdentity": "x"}, []),
    ],
)
def test_updates_of_other_objects(base: dict[str, Any], changes: dict[str, Any], expected: list[str]) -> None:
    assert texts(kinds.validate_update(object_with(base, **changes), object_with(base))) == expected


def test_a_message_that_is_no_object() -> None:
    with pytest.raises(KeyError):
        kinds.validate_create(core_v1_pb2.Taint())


def test_a_job_with_a_wrong_selector_is_refused() -> None:
    """``validateGeneratedSelector`` leaves a selector that cannot be read to the check of selectors."""
    wrong = {"matchExpressions": [{"key": "a", "operator": "Wrong"}]}
    causes_ = texts(kinds.validate_create(object_with(JOB, spec__selector=wrong)))
    where = "spec.selector.matchExpressions[0].operator"
    assert f'{where}: Invalid value: "Wrong": not a valid selector operator' in causes_


@pytest.mark.parametrize(
    ("by_hand", "type_"),
    [
        (pods.RESTART_POLICIES, "core.v1.RestartPolicy"),
        (pods.PREEMPTION_POLICIES, "core.v1.PreemptionPolicy"),
        (pods._DNS_POLICIES, "core.v1.DNSPolicy"),
        (pod_volumes.PULL_POLICIES, "core.v1.PullPolicy"),
        (containers._MESSAGE_POLICIES, "core.v1.TerminationMessagePolicy"),
        (containers._PROTOCOLS, "core.v1.Protocol"),
        (probes._SCHEMES, "core.v1.URIScheme"),
        (security._PROFILE_TYPES, "core.v1.SeccompProfileType"),
        (security._PROFILE_TYPES, "core.v1.AppArmorProfileType"),
        (placement.TAINT_EFFECTS, "core.v1.TaintEffect"),
    ],
)
def test_values_by_hand_are_those_of_kubernetes(by_hand: tuple[str, ...], type_: str) -> None:
    """They have an order of their own in refusals, or are asked of every pod."""
    assert tuple(sorted(by_hand)) == go_types.values(type_)


def test_enums_that_checks_name_are_in_the_table() -> None:
    of_pods = (volume_sources, pod_volumes, security)
    named = [
        name
        for module in (core, storage, batch, apps, claims, placement, small_groups, *of_pods)
        for name in re.findall(r'"([a-z]+\.v\d\.[A-Z]\w+)"', inspect.getsource(module))
    ]
    assert len(named) > 10
    assert [name for name in named if not go_types.values(name)] == []


def test_features_that_a_node_declares_are_names_in_order() -> None:
    """As kube-apiserver v1.36.3 answered."""
    status = {"declaredFeatures": ["b", "A-B", "Zed", "Abc", "Abc"]}
    node = convert.from_json(core_v1_pb2.Node, {"metadata": {"name": "n"}, "status": status})
    camel = (
        "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
        "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
    )
    order = "list must be sorted alphabetically"
    found: list[Cause] = []
    core._check_node_change(node, node, found)
    assert [f"{one.field}: {one.message}" for one in found] == [
        f'status.declaredFeatures[0]: Invalid value: "b": invalid feature name "b": {camel}',
        f'status.declaredFeatures[1]: Invalid value: "A-B": {order}',
        f'status.declaredFeatures[1]: Invalid value: "A-B": invalid feature name "A-B": {camel}',
        f'status.declaredFeatures[3]: Invalid value: "Abc": {order}',
        'status.declaredFeatures[4]: Duplicate value: "Abc"',
    ]
