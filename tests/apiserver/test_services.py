"""Services get addresses, families and node ports, and keep them."""

from __future__ import annotations

from typing import Any

from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster

SERVICES = "/api/v1/namespaces/default/services"
PORT = {"port": 80}


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
