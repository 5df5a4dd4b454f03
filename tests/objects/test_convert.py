"""JSON to messages and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import (
    apps_v1_pb2,
    batch_v1_pb2,
    coordination_v1_pb2,
    core_v1_pb2,
    meta_v1_pb2,
    node_v1_pb2,
    policy_v1_pb2,
)
from tests.objects.generated_messages import messages

KINDS = [resource.message for resource in resources.RESOURCES]


@given(st.sampled_from(KINDS).flatmap(messages))
def test_any_object_comes_back_the_same(message: Message) -> None:
    data = convert.to_json(message)
    text = json.dumps(data)
    assert convert.from_json(type(message), json.loads(text)) == message
    assert convert.from_manifest(json.loads(json.dumps(convert.to_manifest(message)))) == message


@given(st.sampled_from(KINDS).flatmap(messages))
def test_json_does_not_depend_on_how_a_message_came_to_be(message: Message) -> None:
    copy = type(message).FromString(message.SerializeToString())
    assert json.dumps(convert.to_json(copy)) == json.dumps(convert.to_json(message))


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "namespace": "default",
        "creationTimestamp": "2000-01-01T00:01:00Z",
        "labels": {"app": "web", "empty": ""},
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}}}],
    },
    "spec": {
        "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "keys", "secret": {"secretName": "s"}}],
        "containers": [
            {
                "name": "main",
                "resources": {"requests": {"cpu": "1500m", "memory": "1536Mi"}},
                "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
                "livenessProbe": {"tcpSocket": {"port": 80}},
            }
        ],
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}, "topologyKey": "zone"}]
            }
        },
        "priority": 0,
        "hostNetwork": False,
    },
}


def test_a_manifest_comes_back_unchanged() -> None:
    pod = convert.from_manifest(POD)
    assert isinstance(pod, core_v1_pb2.Pod)
    assert convert.to_manifest(pod) == POD
    assert list(convert.to_manifest(pod))[:2] == ["apiVersion", "kind"]
    assert convert.to_json(pod) == {key: POD[key] for key in ("metadata", "spec")}


def test_what_is_inline_in_json_is_a_message_of_its_own_in_protobuf() -> None:
    pod = convert.from_json(core_v1_pb2.Pod, POD)
    assert pod.spec.volumes[0].volumeSource.HasField("emptyDir")
    assert pod.spec.containers[0].readinessProbe.handler.httpGet.port.strVal == "http"
    assert pod.spec.containers[0].livenessProbe.handler.tcpSocket.port.intVal == 80


def test_presence_is_kept() -> None:
    pod = convert.from_json(core_v1_pb2.Pod, POD)
    assert pod.spec.HasField("priority")
    assert not pod.spec.HasField("preemptionPolicy")
    term = pod.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]
    assert term.HasField("labelSelector")
    assert not term.HasField("namespaceSelector")


@pytest.mark.parametrize("message_class", [core_v1_pb2.Pod, core_v1_pb2.Node])
def test_null_and_empty_are_absent(message_class: type[Message]) -> None:
    data = {"metadata": {"creationTimestamp": None, "labels": {}, "name": None}, "spec": None}
    assert convert.to_json(convert.from_json(message_class, data)) == {"metadata": {}}


def test_a_label_without_a_value_is_empty() -> None:
    node = convert.from_json(core_v1_pb2.Node, {"metadata": {"labels": {"node-role.kubernetes.io/worker": None}}})
    assert node.metadata.labels["node-role.kubernetes.io/worker"] == ""


@pytest.mark.parametrize(
    ("given_text", "written"),
    [
        ("2024-02-29T12:30:00Z", "2024-02-29T12:30:00Z"),
        ("2024-02-29T12:30:00.999Z", "2024-02-29T12:30:00Z"),
        ("2024-02-29T14:30:00+02:00", "2024-02-29T12:30:00Z"),
        ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59Z"),
    ],
)
def test_times_are_whole_seconds_in_utc(given_text: str, written: str) -> None:
    pod = convert.from_json(core_v1_pb2.Pod, {"status": {"startTime": given_text}})
    assert convert.to_json(pod) == {"status": {"startTime": written}}
    assert not pod.status.startTime.HasField("nanos")


def test_micro_times_have_six_digits() -> None:
    lease = convert.from_json(coordination_v1_pb2.Lease, {"spec": {"renewTime": "2024-01-01T00:00:00.500000Z"}})
    assert lease.spec.renewTime.nanos == 500_000_000
    assert convert.to_json(lease) == {"spec": {"renewTime": "2024-01-01T00:00:00.500000Z"}}
    for text in ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5Z", "2024-01-01T00:00:00.5000000Z"):
        with pytest.raises(convert.ConversionError):
            convert.from_json(coordination_v1_pb2.Lease, {"spec": {"renewTime": text}})


def test_numbers_may_stand_for_quantities() -> None:
    node = convert.from_json(core_v1_pb2.Node, {"status": {"allocatable": {"cpu": 4, "memory": 0.5, "pods": None}}})
    assert convert.to_json(node) == {"status": {"allocatable": {"cpu": "4", "memory": "500m", "pods": "0"}}}


def test_int_or_string() -> None:
    budget = {"spec": {"minAvailable": 1, "maxUnavailable": "50%"}}
    assert convert.to_json(convert.from_json(policy_v1_pb2.PodDisruptionBudget, budget)) == budget


def test_bytes_of_a_go_client_that_sets_empty_strings() -> None:
    port = meta_v1_pb2.IntOrString(type=0, intVal=8, strVal="")
    service = core_v1_pb2.Service(spec=core_v1_pb2.ServiceSpec(ports=[core_v1_pb2.ServicePort(targetPort=port)]))
    assert convert.to_json(service) == {"spec": {"ports": [{"targetPort": 8}]}}


def problems(message_class: type[Message], data: Any, path: str = "") -> list[tuple[str, str, str]]:
    with pytest.raises(convert.ConversionError) as caught:
        convert.from_json(message_class, data, path=path)
    return [(problem.path, problem.message, problem.suggestion) for problem in caught.value.problems]


BAD_SUFFIX = (
    "unable to parse quantity's suffix: '1Gii' ends in 'Gii', which is none of "
    "n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei, or an exponent such as e3"
)


def test_all_mistakes_are_reported_at_once_with_their_places() -> None:
    found = problems(
        core_v1_pb2.Pod,
        {
            "metadata": {"name": 5, "lables": {"a": "b"}, "annotations": {"on": True}},
            "spec": {
                "containers": [
                    {"name": "a", "resources": {"request": {"cpu": 1}, "limits": {"cpu": "1Gii", "memory": True}}},
                    "b",
                ],
                "hostNetwork": "yes",
                "priority": 1.5,
                "terminationGracePeriodSeconds": 2**63,
                "tolerations": {},
                "nodeSelector": ["a"],
                "topologySpreadConstraints": [{"maxSkew": 2**31}],
                "affinity": 3,
            },
            "status": {"startTime": "yesterday"},
        },
    )
    assert found == [
        ("metadata.name", "must be a string, not the number 5", ""),
        ("metadata.lables", 'unknown field "lables"', 'did you mean "labels"?'),
        ("metadata.annotations[on]", "must be a string, not true", ""),
        ("spec.containers[0].resources.request", 'unknown field "request"', 'did you mean "requests"?'),
        (
            "spec.containers[0].resources.limits[cpu]",
            BAD_SUFFIX,
            "",
        ),
        (
            "spec.containers[0].resources.limits[memory]",
            "must be a quantity such as 500m or 1Gi, not true",
            "",
        ),
        ("spec.containers[1]", 'must be an object, not the string "b"', ""),
        ("spec.hostNetwork", 'must be true or false, not the string "yes"', ""),
        ("spec.priority", "must be an integer, not the number 1.5", ""),
        (
            "spec.terminationGracePeriodSeconds",
            f"must be between {-(2**63)} and {2**63 - 1}, not {2**63}",
            "",
        ),
        ("spec.tolerations", "must be a list, not an object", ""),
        ("spec.nodeSelector", "must be an object, not a list", ""),
        (
            "spec.topologySpreadConstraints[0].maxSkew",
            f"must be between {-(2**31)} and {2**31 - 1}, not {2**31}",
            "",
        ),
        ("spec.affinity", "must be an object, not the number 3", ""),
        ("status.startTime", "must be a time such as 2006-01-02T15:04:05Z, not 'yesterday'", ""),
    ]


def test_places_are_also_given_as_steps() -> None:
    with pytest.raises(convert.ConversionError) as caught:
        convert.from_json(
            core_v1_pb2.Pod,
            {"spec": {"containers": [{"resources": {"limits": {"a/b": "x"}}}]}},
            path="spec.manifests[2]",
        )
    (problem,) = caught.value.problems
    assert problem.path == "spec.manifests[2].spec.containers[0].resources.limits[a/b]"
    assert problem.steps == ("spec", "containers", 0, "resources", "limits", "a/b")
    assert str(problem).startswith("spec.manifests[2].spec.containers[0].resources.limits[a/b]: quantities must be")


def test_true_is_no_number_and_a_number_no_text() -> None:
    assert problems(apps_v1_pb2.ReplicaSet, {"spec": {"replicas": True}})
    assert problems(core_v1_pb2.Pod, {"metadata": {"labels": {"version": 1}}}) == [
        ("metadata.labels[version]", "must be a string, not the number 1", "")
    ]
    assert problems(core_v1_pb2.Pod, {"metadata": {"labels": {1: "a"}}}) == [
        ("metadata.labels[1]", "the key must be a string, not the number 1", "")
    ]


@pytest.mark.parametrize(
    ("data", "path", "says"),
    [
        ([], "", "must be an object, not a list"),
        ({"kind": "Pod"}, "apiVersion", "must be given"),
        ({"apiVersion": "v1"}, "kind", "must be given"),
        ({"apiVersion": "v1", "kind": "Pods"}, "kind", 'did you mean "Pod"'),
        ({"apiVersion": "v2", "kind": "Pod"}, "apiVersion", 'did you mean "v1"'),
        ({"apiVersion": "apps/v1", "kind": "Pod"}, "apiVersion", 'did you mean "v1"'),
        ({"apiVersion": 1, "kind": "Pod"}, "apiVersion", "must be a string"),
    ],
)
def test_manifests_of_no_kind(data: Any, path: str, says: str) -> None:
    with pytest.raises(convert.ConversionError) as caught:
        convert.from_manifest(data)
    assert [problem.path for problem in caught.value.problems] == [path]
    assert says in str(caught.value)


def test_the_kind_may_be_left_out_but_not_be_another() -> None:
    assert problems(core_v1_pb2.Pod, {"apiVersion": "v1", "kind": "Node"}) == [
        ("kind", "must be 'Pod', not 'Node'", "")
    ]
    assert problems(core_v1_pb2.PodSpec, {"kind": "PodSpec"})[0][0] == "kind"


def test_what_belongs_to_subresources_has_a_kind_too() -> None:
    binding = {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n1"}}
    message = convert.from_json(core_v1_pb2.Binding, binding)
    assert convert.to_manifest(message) == binding


def all_messages() -> list[type[Message]]:
    files = [core_v1_pb2, apps_v1_pb2, batch_v1_pb2, coordination_v1_pb2, meta_v1_pb2, node_v1_pb2, policy_v1_pb2]
    return [getattr(file, name) for file in files for name in file.DESCRIPTOR.message_types_by_name]


@pytest.mark.parametrize("message_class", all_messages(), ids=lambda one: one.DESCRIPTOR.full_name)
def test_every_message_has_a_json_form(message_class: type[Message]) -> None:
    assert convert.from_json(message_class, {}) == message_class()
    assert convert.to_json(message_class()) == {}


def test_managed_fields_that_are_no_json_do_not_stop_the_rest() -> None:
    entry = meta_v1_pb2.ManagedFieldsEntry(manager="x", fieldsV1=meta_v1_pb2.FieldsV1(Raw=b"{"))
    assert convert.to_json(entry) == {"manager": "x", "fieldsV1": {}}
