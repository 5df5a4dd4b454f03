"""What the API server fills in."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults
from kemu.messages.k8s import core_v1_pb2


def defaulted(kind: str, api_version: str = "v1", **data: Any) -> dict[str, Any]:
    message = convert.from_manifest({"apiVersion": api_version, "kind": kind, **data})
    defaults.apply(message)
    once = copy.deepcopy(message)
    defaults.apply(message)
    assert message == once, "applied twice, defaults change nothing more"
    return convert.to_json(message)


def test_a_plain_pod() -> None:
    pod = defaulted("Pod", metadata={"name": "a"}, spec={"containers": [{"name": "main", "image": "web:1"}]})
    assert pod == {
        "metadata": {"name": "a"},
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "web:1",
                    "imagePullPolicy": "IfNotPresent",
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "enableServiceLinks": True,
        },
    }


def test_what_is_given_stays() -> None:
    spec = {
        "containers": [{"name": "main", "image": "web", "imagePullPolicy": "Never"}],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "schedulerName": "mine",
        "enableServiceLinks": False,
    }
    pod = defaulted("Pod", spec=spec)["spec"]
    assert {key: pod[key] for key in spec if key != "containers"} == {
        key: value for key, value in spec.items() if key != "containers"
    }
    assert pod["containers"][0]["imagePullPolicy"] == "Never"


def test_a_negative_grace_period_of_a_pod_is_a_second() -> None:
    assert (
        defaulted("Pod", spec={"containers": [], "terminationGracePeriodSeconds": -1})["spec"][
            "terminationGracePeriodSeconds"
        ]
        == 1
    )


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("web", "Always"),
        ("web:latest", "Always"),
        ("web:1", "IfNotPresent"),
        ("registry:5000/web", "Always"),
        ("registry:5000/web:1", "IfNotPresent"),
        ("web@sha256:abc", "IfNotPresent"),
    ],
)
def test_pull_policies(image: str, policy: str) -> None:
    pod = defaulted("Pod", spec={"containers": [{"name": "main", "image": image}]})
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == policy


def first_container(**fields: Any) -> dict[str, Any]:
    pod = defaulted("Pod", spec={"containers": [{"name": "main", "image": "web:1", **fields}]})
    container: dict[str, Any] = pod["spec"]["containers"][0]
    return container


def test_limits_bring_requests() -> None:
    resources = first_container(resources={"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}})[
        "resources"
    ]
    assert resources == {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}


def test_amounts_are_stored_in_thousandths_at_the_finest() -> None:
    requests = first_container(resources={"requests": {"cpu": "100500u", "memory": "1500m"}})["resources"]["requests"]
    assert requests == {"cpu": "101m", "memory": "1500m"}


def test_a_bad_amount_is_left_to_validation() -> None:
    pod = core_v1_pb2.Pod()
    pod.spec.containers.add(name="a").resources.limits["cpu"].string = "1Gii"
    pod.spec.resources.limits["cpu"].string = "1"
    defaults.apply(pod)
    defaults.prepare_create(pod)
    assert pod.spec.containers[0].resources.requests["cpu"].string == "1Gii"


def test_ports_probes_and_variables() -> None:
    container = first_container(
        ports=[{"containerPort": 80}],
        livenessProbe={"httpGet": {"port": 80}},
        env=[{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    )
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert container["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"


def test_ports_of_the_host_network_are_host_ports() -> None:
    spec = {"hostNetwork": True, "containers": [{"name": "a", "image": "x", "ports": [{"containerPort": 80}]}]}
    assert defaulted("Pod", spec=spec)["spec"]["containers"][0]["ports"][0]["hostPort"] == 80


def test_volumes() -> None:
    spec = {
        "volumes": [
            {"name": "a"},
            {"name": "b", "secret": {"secretName": "s"}},
            {"name": "c", "hostPath": {"path": "/"}},
        ],
        "containers": [{"name": "a", "image": "x"}],
    }
    assert defaulted("Pod", spec=spec)["spec"]["volumes"] == [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "secret": {"secretName": "s", "defaultMode": 0o644}},
        {"name": "c", "hostPath": {"path": "/", "type": ""}},
    ]


def test_pod_level_limits_bring_pod_level_requests() -> None:
    spec = {
        "containers": [{"name": "a", "image": "x", "resources": {"requests": {"cpu": "1500m"}}}],
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
    }
    assert defaulted("Pod", spec=spec)["spec"]["resources"]["requests"] == {"cpu": "1500m", "memory": "1Gi"}


def test_both_names_of_the_service_account_agree() -> None:
    containers = [{"name": "a", "image": "x"}]
    for field in ("serviceAccount", "serviceAccountName"):
        spec = defaulted("Pod", spec={"containers": containers, field: "robot"})["spec"]
        assert spec["serviceAccount"] == spec["serviceAccountName"] == "robot"


def test_other_kinds() -> None:
    assert defaulted("Node", status={"capacity": {"cpu": "4"}})["status"]["allocatable"] == {"cpu": "4"}
    assert defaulted("Node", status={"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}})["status"][
        "allocatable"
    ] == {"cpu": "3"}
    assert defaulted("Namespace", metadata={"name": "team"}) == {
        "metadata": {"name": "team", "labels": {"kubernetes.io/metadata.name": "team"}},
        "status": {"phase": "Active"},
    }
    assert defaulted("PriorityClass", "scheduling.k8s.io/v1", value=5) == {
        "value": 5,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert defaulted("Service", spec={"ports": [{"port": 80}]})["spec"] == {
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
    }
    assert defaulted("Lease", "coordination.k8s.io/v1", spec={}) == {"spec": {}}


TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}


def test_controllers() -> None:
    replica_set = defaulted("ReplicaSet", "apps/v1", spec={"template": TEMPLATE})
    assert replica_set["spec"]["replicas"] == 1
    assert "labels" not in replica_set.get("metadata", {})
    assert replica_set["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    assert "enableServiceLinks" not in replica_set["spec"]["template"]["spec"]

    deployment = defaulted("Deployment", "apps/v1", spec={"replicas": 0, "template": TEMPLATE})["spec"]
    assert deployment["replicas"] == 0
    assert deployment["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert (deployment["revisionHistoryLimit"], deployment["progressDeadlineSeconds"]) == (10, 600)

    daemon_set = defaulted("DaemonSet", "apps/v1", spec={"template": TEMPLATE})["spec"]
    assert daemon_set["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
    }
    stateful_set = defaulted("StatefulSet", "apps/v1", spec={"template": TEMPLATE})["spec"]
    assert stateful_set["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert stateful_set["podManagementPolicy"] == "OrderedReady"
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}
    made = defaulted("StatefulSet", "apps/v1", spec={"template": TEMPLATE, "volumeClaimTemplates": [claim]})["spec"]
    assert made["volumeClaimTemplates"] == [
        {**claim, "spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"}}
    ]

    job = defaulted("Job", "batch/v1", spec={"template": TEMPLATE})["spec"]
    assert (job["parallelism"], job["completions"], job["backoffLimit"]) == (1, 1, 6)
    assert (job["completionMode"], job["suspend"]) == ("NonIndexed", False)
    parallel = defaulted("Job", "batch/v1", spec={"template": TEMPLATE, "parallelism": 3})["spec"]
    assert "completions" not in parallel

    controller = defaulted("ReplicationController", spec={"template": TEMPLATE})
    assert (controller["spec"]["replicas"], controller["spec"]["selector"]) == (1, {"app": "web"})


# Create strategies --------------------------------------------------------------------------------------------------


def prepared(**data: Any) -> dict[str, Any]:
    message = convert.from_manifest({"apiVersion": "v1", "kind": "Pod", **data})
    defaults.apply(message)
    defaults.prepare_create(message)
    return convert.to_json(message)


def test_users_do_not_set_the_status_of_a_new_pod() -> None:
    containers = [{"name": "a", "image": "x", "resources": {"requests": {"cpu": "1"}}}]
    pod = prepared(metadata={"generation": 7}, spec={"containers": containers}, status={"phase": "Running"})
    assert pod["status"] == {"phase": "Pending", "qosClass": "Burstable"}
    assert pod["metadata"]["generation"] == 1


def test_a_gated_pod_says_so() -> None:
    pod = prepared(spec={"containers": [{"name": "a", "image": "x"}], "schedulingGates": [{"name": "g"}]})
    (condition,) = pod["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
    )


def test_label_keys_become_requirements() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["version", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["app"]}
    pod = prepared(
        metadata={"labels": {"app": "web", "version": "2", "tenant": "t"}},
        spec={
            "containers": [{"name": "a", "image": "x"}],
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
            "topologySpreadConstraints": [constraint, {**constraint, "topologyKey": "host", "labelSelector": {}}],
        },
    )["spec"]
    (merged,) = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert merged["labelSelector"]["matchExpressions"] == [
        {"key": "version", "operator": "In", "values": ["2"]},
        {"key": "tenant", "operator": "NotIn", "values": ["t"]},
    ]
    without, with_selector = pod["topologySpreadConstraints"]
    assert "labelSelector" not in without
    assert with_selector["labelSelector"] == {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}


def test_fields_of_the_pod_in_volumes_are_of_v1_and_tokens_live_an_hour() -> None:
    item = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    sources = [{"downwardAPI": {"items": [item]}}, {"serviceAccountToken": {"path": "token"}}]
    volumes = [{"name": "a", "downwardAPI": {"items": [item]}}, {"name": "b", "projected": {"sources": sources}}]
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    first, second = defaulted("Pod", "v1", spec=spec)["spec"]["volumes"]
    complete = {"path": "name", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}
    assert first["downwardAPI"] == {"items": [complete], "defaultMode": 420}
    assert second["projected"]["sources"] == [
        {"downwardAPI": {"items": [complete]}},
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
    ]
