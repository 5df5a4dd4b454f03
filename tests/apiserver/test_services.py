"""Services get addresses, families and node ports, and keep them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kemu.runtime.env import ActorSpec
from tests.apiserver import service_ranges
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster

SERVICES = "/api/v1/namespaces/default/services"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
PORT = {"port": 80}
SPEED = 10.0
RECORDED = Path(__file__).with_name("real_networks.json")
"""Services and NetworkPolicies that were created one after the other on kube-apiserver v1.36.3, and what was wrong."""


async def create(cluster: Cluster, name: str, **spec: Any) -> dict[str, Any]:
    ports = {} if spec.get("type") == "ExternalName" else {"ports": [PORT]}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {**ports, **spec}}
    answer = await cluster.http.post(SERVICES, json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_service_gets_an_address_of_its_own() -> None:
    async def main(cluster: Cluster) -> None:
        specs = [(await create(cluster, f"s{number}", selector={"a": "b"}))["spec"] for number in range(300)]
        addresses = [spec["clusterIP"] for spec in specs]
        assert len(set(addresses)) == len(addresses)
        assert all(one.startswith("10.96.") for one in addresses)
        assert specs[0]["clusterIPs"] == [addresses[0]]
        assert (specs[0]["ipFamilies"], specs[0]["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")

    gateway_cluster.run(main)


def test_services_without_an_address_have_none() -> None:
    async def main(cluster: Cluster) -> None:
        headless = (await create(cluster, "headless", clusterIP="None", selector={"a": "b"}))["spec"]
        assert (headless["clusterIPs"], headless["ipFamilyPolicy"]) == (["None"], "SingleStack")
        of_nobody = (await create(cluster, "of-nobody", clusterIP="None"))["spec"]
        assert (of_nobody["ipFamilies"], of_nobody["ipFamilyPolicy"]) == (["IPv4", "IPv6"], "RequireDualStack")
        external = (await create(cluster, "external", type="ExternalName", externalName="example.com"))["spec"]
        assert not {"clusterIP", "clusterIPs", "ipFamilies"} & external.keys()

    gateway_cluster.run(main)


def test_node_ports_are_free_and_stay() -> None:
    async def main(cluster: Cluster) -> None:
        ports = [
            (await create(cluster, f"s{number}", type="NodePort"))["spec"]["ports"][0]["nodePort"]
            for number in range(50)
        ]
        assert len(set(ports)) == len(ports)
        assert all(30000 <= port < 32768 for port in ports)

    gateway_cluster.run(main)


def test_an_update_keeps_what_it_does_not_say() -> None:
    async def main(cluster: Cluster) -> None:
        made = await create(cluster, "a", type="NodePort", selector={"a": "b"})
        kept = {name: value for name, value in made["spec"].items() if name in ("type", "selector", "sessionAffinity")}
        changed = {**made, "spec": {**kept, "ports": [PORT, {"port": 81, "name": "second"}]}}
        changed["spec"]["ports"][0] = {**PORT, "name": "first"}
        answer = await cluster.http.put(f"{SERVICES}/a", json=changed)
        assert answer.status_code == 200, answer.text
        spec = answer.json()["spec"]
        assert spec["clusterIP"] == made["spec"]["clusterIP"]
        assert spec["ports"][0]["nodePort"] == made["spec"]["ports"][0]["nodePort"]
        assert spec["ports"][1]["nodePort"] not in (0, spec["ports"][0]["nodePort"])

    gateway_cluster.run(main)


def test_what_kubernetes_refuses_is_refused() -> None:
    async def main(cluster: Cluster) -> None:
        for case in json.loads(RECORDED.read_text()):
            is_service = case["kind"] == "Service"
            body = {
                "apiVersion": "v1" if is_service else "networking.k8s.io/v1",
                "kind": case["kind"],
                "metadata": {"name": case["name"]},
                "spec": case["spec"],
            }
            answer = await cluster.http.post(SERVICES if is_service else POLICIES, json=body)
            causes = answer.json().get("details", {}).get("causes", [])
            assert [f"{one['field']}: {one['message']}" for one in causes] == case["causes"], case
            assert answer.status_code == (422 if case["causes"] else 201)

    gateway_cluster.run(main)


def test_an_address_does_not_change_and_another_type_gives_up_its_ports() -> None:
    merge = {"content-type": "application/merge-patch+json"}

    async def main(cluster: Cluster) -> None:
        async def patch(name: str, **spec: Any) -> Any:
            answer = await cluster.http.patch(f"{SERVICES}/{name}", json={"spec": spec}, headers=merge)
            return answer.json()

        made = await create(cluster, "a", type="LoadBalancer", externalTrafficPolicy="Local")
        assert made["spec"]["healthCheckNodePort"] != made["spec"]["ports"][0]["nodePort"]
        refused = await patch("a", clusterIP="10.96.0.78")
        wanted = 'spec.clusterIPs[0]: Invalid value: ["10.96.0.78"]: may not change once set'
        assert refused["message"] == f'Service "a" is invalid: {wanted}'
        plain = (await patch("a", type="ClusterIP"))["spec"]
        assert plain["clusterIP"] == made["spec"]["clusterIP"]
        assert not {"healthCheckNodePort", "externalTrafficPolicy", "allocateLoadBalancerNodePorts"} & plain.keys()
        assert "nodePort" not in plain["ports"][0]
        both = [{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}]
        ports = (await patch("a", type="NodePort", ports=both))["spec"]["ports"]
        assert ports[0]["nodePort"] == ports[1]["nodePort"]
        external = (await patch("a", type="ExternalName", externalName="example.com", ports=None))["spec"]
        assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & external.keys()

    gateway_cluster.run(main)


@pytest.mark.parametrize(
    ("families", "ranges"), [("one", ["10.96.0.0/16"]), ("two", ["10.96.0.0/16", "fd00:10::/112"])]
)
def test_ranges_and_addresses_are_as_on_a_real_control_plane(families: str, ranges: list[str]) -> None:
    async def main(cluster: Cluster) -> None:
        for number, step in enumerate(json.loads(service_ranges.FILE.read_text())[families]):
            method, path, body, waits = step.pop("request")
            if method == service_ranges.WAIT:
                await asyncio.sleep(waits / SPEED)
                continue
            headers = {"content-type": service_ranges.content_type(method)}
            content = None if body is None else json.dumps(body)
            for _ in range(300 if waits else 1):
                answer = await cluster.http.request(method, path, content=content, headers=headers)
                found = service_ranges.told(answer.status_code, answer.json())
                if found == step:
                    break
                await asyncio.sleep(0.05)
            assert found == step, (number, method, path, body)

    controller = ActorSpec("controller/service-cidr", "kemu.emulated.controllers.services.ranges:ServiceRanges")
    gateway_cluster.run(main, servers=({"service_ranges": ranges},), others=[controller], speed=SPEED)


def test_an_ingress_gets_the_newest_default_class() -> None:
    classes, ingresses = (
        "/apis/networking.k8s.io/v1/ingressclasses",
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
    )
    head = {"apiVersion": "networking.k8s.io/v1"}

    async def main(cluster: Cluster) -> None:
        async def add_class(name: str, default: str) -> None:
            annotations = {"ingressclass.kubernetes.io/is-default-class": default}
            metadata = {"name": name, "annotations": annotations}
            body = {**head, "kind": "IngressClass", "metadata": metadata, "spec": {"controller": "example.com/c"}}
            assert (await cluster.http.post(classes, json=body)).status_code == 201

        async def class_of(name: str, annotations: dict[str, str] | None = None, **spec: Any) -> Any:
            backend = {"service": {"name": "s", "port": {"number": 80}}}
            metadata = {"name": name, "annotations": annotations or {}}
            body = {**head, "kind": "Ingress", "metadata": metadata, "spec": {"defaultBackend": backend, **spec}}
            answer = await cluster.http.post(ingresses, json=body)
            assert answer.status_code == 201, answer.text
            return answer.json()["spec"].get("ingressClassName")

        await add_class("other", "false")
        assert await class_of("a") is None
        await add_class("z", "true")
        assert await class_of("b") == "z"
        await add_class("y", "true")
        assert await class_of("c") == "y"
        assert await class_of("d", ingressClassName="other") == "other"
        assert await class_of("e", {"kubernetes.io/ingress.class": "nginx"}) is None

    gateway_cluster.run(main)
