"""The rules of single kinds: what a write may touch, which generations count, what may never change."""

from __future__ import annotations

from typing import Any

import pytest

from kemu import errors
from kemu.emulated.apiserver.registry import strategies
from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert
from tests.apiserver.apiserver_cluster import Cluster, refusal, run

TEMPLATE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "main", "image": "pause:1"}]},
}
OBJECTS: dict[str, dict[str, Any]] = {
    "deployments": {"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}},
    "replicasets": {"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}},
    "podtemplates": {"template": TEMPLATE},
    "configmaps": {"data": {"a": "1"}},
    "secrets": {"stringData": {"a": "1"}},
    "ingressclasses": {"spec": {"controller": "example.com/a"}},
    "networkpolicies": {"spec": {"podSelector": {}}},
    "endpointslices": {"addressType": "IPv4"},
    "clusterrolebindings": {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a"}},
    "controllerrevisions": {"revision": 1},
    "priorityclasses": {"value": 5},
    "services": {"spec": {"ports": [{"port": 80}]}},
    "persistentvolumes": {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
    },
    "pods": {"spec": {**TEMPLATE["spec"], "schedulingGates": [{"name": "example.com/a"}]}},
}


def new(plural: str, name: str = "a", **more: Any) -> Any:
    resource = resources.BY_PLURAL[plural]
    metadata = {"name": name, "namespace": "default"} if resource.namespaced else {"name": name}
    return convert.from_json(resource.message, {"metadata": metadata, **OBJECTS.get(plural, {}), **more})


async def create(cluster: Cluster, plural: str, **more: Any) -> Any:
    return await cluster.client.create(new(plural, **more))


async def patch(cluster: Cluster, plural: str, change: dict[str, Any], subresource: str = "") -> Any:
    namespace = "default" if resources.BY_PLURAL[plural].namespaced else ""
    return await cluster.client.patch(plural, "a", namespace, change, subresource)


@pytest.mark.parametrize("plural", [one.plural for one in resources.RESOURCES if one.has_status])
def test_a_status_write_leaves_the_spec_alone(plural: str) -> None:
    strategy = strategies.STRATEGIES[plural]
    message: Any = strategy.resource.message
    old, sent = message(), message()
    spec = old.spec.DESCRIPTOR.fields[0]
    old.spec.SetInParent()
    sent.metadata.name = old.metadata.name = "a"
    sent.status.SetInParent()
    strategy.subresources["status"].prepare(sent, old)
    assert sent.HasField("spec"), f"the spec ({spec.name}, …) was lost"
    assert sent.HasField("status")


@pytest.mark.parametrize(
    ("plural", "change", "counts"),
    [
        ("deployments", {"spec": {"replicas": 3}}, True),
        ("deployments", {"metadata": {"annotations": {"x": "1"}}}, True),
        ("deployments", {"metadata": {"labels": {"x": "1"}}}, False),
        ("replicasets", {"metadata": {"annotations": {"x": "1"}}}, False),
        ("podtemplates", {"template": {"metadata": {"labels": {"app": "b"}}}}, True),
        ("networkpolicies", {"spec": {"podSelector": {"matchLabels": {"a": "b"}}}}, True),
        ("ingressclasses", {"spec": {"parameters": {"kind": "K", "name": "n"}}}, True),
        ("endpointslices", {"metadata": {"labels": {"x": "1"}}}, True),
        ("endpointslices", {"metadata": {"annotations": {"x": "1"}}}, False),
        ("endpointslices", {"ports": [{"port": 80}]}, True),
        ("priorityclasses", {"description": "x"}, False),
    ],
)
def test_what_the_generation_counts(plural: str, change: dict[str, Any], counts: bool) -> None:
    async def main(cluster: Cluster) -> None:
        created = await create(cluster, plural)
        assert created.metadata.generation == 1
        changed = await patch(cluster, plural, {**change, "metadata": {"generation": 7, **change.get("metadata", {})}})
        assert changed.metadata.generation == (2 if counts else 1)

    run(main)


def test_kinds_without_a_generation_get_none_from_clients() -> None:
    async def main(cluster: Cluster) -> None:
        await create(cluster, "configmaps")
        changed = await patch(cluster, "configmaps", {"metadata": {"generation": 7}})
        assert not changed.metadata.HasField("generation")

    run(main)


def test_the_status_of_a_deployment_changes_no_labels() -> None:
    async def main(cluster: Cluster) -> None:
        await create(cluster, "deployments")
        change = {"metadata": {"labels": {"x": "1"}, "annotations": {"x": "1"}}, "status": {"replicas": 2}}
        changed = await patch(cluster, "deployments", change, "status")
        assert dict(changed.metadata.labels) == {}
        assert dict(changed.metadata.annotations) == {"x": "1"}
        assert changed.status.replicas == 2
        assert changed.metadata.generation == 1

    run(main)


@pytest.mark.parametrize(
    ("plural", "given", "change", "why"),
    [
        (
            "configmaps",
            {"immutable": True},
            {"data": {"a": "2"}},
            "data: Forbidden: field is immutable when `immutable` is set",
        ),
        ("configmaps", {"immutable": True}, {"immutable": False}, "immutable: Forbidden: field is immutable when"),
        ("secrets", {}, {"type": "kubernetes.io/tls"}, 'type: Invalid value: "kubernetes.io/tls": field is immutable'),
        ("clusterrolebindings", {}, {"roleRef": {"name": "b"}}, "cannot change roleRef"),
        (
            "ingressclasses",
            {},
            {"spec": {"controller": "example.com/b"}},
            'spec.controller: Invalid value: "example.com/b": field is immutable',
        ),
        ("endpointslices", {}, {"addressType": "IPv6"}, 'addressType: Invalid value: "IPv6": field is immutable'),
        ("controllerrevisions", {}, {"data": {"a": 1}}, "data: Invalid value:"),
        ("configmaps", {}, {"data": {"a/b": "1"}}, 'data[a/b]: Invalid value: "a/b": a valid config key must consist'),
    ],
)
def test_what_may_not_change(plural: str, given: dict[str, Any], change: dict[str, Any], why: str) -> None:
    async def main(cluster: Cluster) -> None:
        await create(cluster, plural, **given)
        error = await refusal(errors.Invalid, patch(cluster, plural, change), cluster)
        assert why in str(error)

    run(main)


def test_string_data_of_a_secret_is_for_writing_only() -> None:
    async def main(cluster: Cluster) -> None:
        created = await create(cluster, "secrets")
        assert created.type == "Opaque"
        assert dict(created.data) == {"a": b"1"}
        assert not created.stringData

    run(main)


def test_managed_fields_are_not_lost_by_clients_that_do_not_know_them() -> None:
    async def main(cluster: Cluster) -> None:
        entry = {
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}},
        }
        created = await create(cluster, "configmaps", metadata={**META, "managedFields": [entry]})
        assert not created.metadata.managedFields, "as uid and creationTimestamp, they belong to the server"
        changed = await patch(cluster, "configmaps", {"metadata": {"managedFields": [entry]}})
        assert [one.manager for one in changed.metadata.managedFields] == ["kubectl"]
        changed = await patch(cluster, "configmaps", {"data": {"b": "2"}})
        assert [one.manager for one in changed.metadata.managedFields] == ["kubectl", "user"]
        sent = new("configmaps")
        found = (await cluster.client.update(sent)).metadata.managedFields
        assert [one.manager for one in found] == ["kubectl"], "absent means: as they are, but for what was removed"
        sent.metadata.managedFields.add()
        assert not (await cluster.client.update(sent)).metadata.managedFields, "an empty entry clears them"

    run(main)


META = {"name": "a", "namespace": "default"}


def test_services_and_roles_may_be_created_by_an_update() -> None:
    async def main(cluster: Cluster) -> None:
        for plural in ("services", "clusterrolebindings"):
            created = await cluster.client.update(new(plural))
            assert created.metadata.uid
        await refusal(errors.NotFound, cluster.client.update(new("configmaps")), cluster)

    run(main)


def test_a_volume_tells_since_when_it_is_in_its_phase() -> None:
    async def main(cluster: Cluster) -> None:
        def since(volume: Any) -> int:
            return int(volume.status.lastPhaseTransitionTime.seconds)

        created = await create(cluster, "persistentvolumes")
        assert since(created) == created.metadata.creationTimestamp.seconds
        await cluster.clock.sleep(10)
        same = await patch(cluster, "persistentvolumes", {"status": {"message": "still pending"}}, "status")
        assert since(same) == since(created)
        update = convert.from_json(type(same), convert.to_json(same))
        update.status.ClearField("lastPhaseTransitionTime")
        assert since(await cluster.client.update(update, "status")) == since(created), "a client need not know it"
        other = await patch(cluster, "persistentvolumes", {"status": {"phase": "Available"}}, "status")
        assert since(other) == since(created) + 10
        stated = {"phase": "Bound", "lastPhaseTransitionTime": "1970-01-01T00:00:01Z"}
        assert since(await patch(cluster, "persistentvolumes", {"status": stated}, "status")) == 1

    run(main)


def test_a_gated_pod_tells_since_when_it_waits() -> None:
    async def main(cluster: Cluster) -> None:
        created = await create(cluster, "pods")
        [condition] = created.status.conditions
        assert condition.reason == "SchedulingGated"
        assert condition.lastTransitionTime == created.metadata.creationTimestamp

    run(main)


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("device.driver == 'a'", None),
        ("device.driver", 'Invalid value: "device.driver": must evaluate to bool or the unknown type, not string'),
        (
            "".join(f"device.attributes.all({name}, " for name in "abcd") + "a == d))))",
            "Forbidden: too complex, exceeds cost limit",
        ),
    ],
)
def test_selectors_of_devices_are_compiled(expression: str, wrong: str | None) -> None:
    device_class = new("deviceclasses", spec={"selectors": [{"cel": {"expression": expression}}]})
    causes = strategies.STRATEGIES["deviceclasses"].validate_create(device_class)
    assert [(cause.field, cause.message) for cause in causes] == (
        [] if wrong is None else [("spec.selectors[0].cel.expression", wrong)]
    )


def test_what_an_earlier_version_let_pass_in_an_ingress_may_stay() -> None:
    def ingress(*, secret: str = "_", path: str = "a", annotated: str = "a") -> Any:
        backend = {"service": {"name": "s", "port": {"number": 80}}}
        paths = [{"path": path, "pathType": "Prefix", "backend": backend}]
        spec = {"rules": [{"host": "*.a", "http": {"paths": paths}}], "tls": [{"secretName": secret}]}
        found = new("ingresses", spec={**spec, "ingressClassName": "a"})
        found.metadata.annotations["kubernetes.io/ingress.class"] = annotated
        return found

    strategy = strategies.STRATEGIES["ingresses"]
    fields = [cause.field for cause in strategy.validate_create(ingress(annotated="b"))]
    assert fields == [
        "spec.rules[0].http.paths[0].path", "spec.tls[0].secretName", "annotations.kubernetes.io/ingress.class",
    ]  # fmt: skip
    assert strategy.validate_update(ingress(annotated="b"), ingress()) == []
    (cause,) = strategy.validate_update(ingress(), ingress(secret="a"))
    assert cause.field == "spec.tls[0].secretName"
    (cause,) = strategy.validate_update(ingress(), ingress(path="/a"))
    assert cause.field == "spec.rules[0].http.paths[0].path"
