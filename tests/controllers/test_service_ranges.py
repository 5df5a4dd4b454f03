"""Ranges of Services' addresses, in virtual time: what is full, what goes, what is mended."""

from __future__ import annotations

from pathlib import Path

from kemu.messages.k8s import core_v1_pb2, networking_v1_pb2
from tests.controllers.test_node_failures import Played, play

NETWORKING = "apiVersion: networking.k8s.io/v1"


def service(name: str, spec: str = "") -> str:
    return f"{{apiVersion: v1, kind: Service, metadata: {{name: {name}}}, spec: {{ports: [{{port: 80}}]{spec}}}}}"


def service_range(name: str, cidr: str) -> str:
    return f"{{{NETWORKING}, kind: ServiceCIDR, metadata: {{name: {name}}}, spec: {{cidrs: [{cidr}]}}}}"


def removed(found: Played, plural: str, name: str) -> list[float]:
    """When."""
    return [at for at, key in found.removed if key.endswith(f"/{plural}/{name}")]


def addresses(found: Played) -> dict[str, str]:
    """By Service, the last one."""
    made: dict[str, str] = {}
    for _, key, value in found.written:
        if "/services/" in key:
            made[key.rpartition("/")[2]] = core_v1_pb2.Service.FromString(value).spec.clusterIP
    return made


def test_when_a_range_is_full_the_next_one_gives_addresses(tmp_path: Path) -> None:
    more = "".join(f"        - {{at: {10 + n}s, create: {service(f's{n}')}}}\n" for n in range(7))
    found = play(tmp_path, f"""
        duration: 60s
        nodes: []
        controllers: [service-cidr]
        apiServers: {{serviceRanges: [10.0.0.0/29]}}
        events:
{more}
        - {{at: 30s, create: {service_range("second", "10.1.0.0/29")}}}
        - {{at: 40s, create: {service("late")}}}
    """)  # fmt: skip
    made = addresses(found)
    assert sorted(made[f"s{n}"] for n in range(6)) == [f"10.0.0.{n}" for n in range(1, 7)]
    assert "s6" not in made
    assert made["late"].startswith("10.1.0.")
    refused = [data["message"] for _, data in found.of("api.refused")]
    assert 'failed to allocate a serviceIP for Service "s6": range is full' in refused[0]


def test_a_range_goes_when_its_addresses_are_in_another_one_or_nobodys(tmp_path: Path) -> None:
    found = play(tmp_path, f"""
        duration: 90s
        nodes: []
        controllers: [service-cidr]
        apiServers: {{serviceRanges: [10.0.0.0/24]}}
        manifests: [{service_range("used", "10.1.0.0/24")}, {service_range("inner", "10.0.0.0/28")}]
        events:
        - {{at: 5s, create: {service("a", ", clusterIP: 10.1.0.7")}}}
        - {{at: 6s, create: {service("b", ", clusterIP: 10.0.0.7")}}}
        - {{at: 10s, delete: {{kind: ServiceCIDR, name: inner}}}}
        - {{at: 20s, delete: {{kind: ServiceCIDR, name: used}}}}
        - {{at: 40s, create: {service("c", ", clusterIP: 10.1.0.8")}}}
        - {{at: 50s, delete: {{kind: Service, name: a}}}}
    """)  # fmt: skip
    assert 20 <= removed(found, "servicecidrs", "inner")[0] < 20.5
    assert 50 <= removed(found, "servicecidrs", "used")[0] < 50.5
    written = [value for at, key, value in found.written if key.endswith("/servicecidrs/used")]
    last = networking_v1_pb2.ServiceCIDR.FromString(written[-1]).status.conditions[0]
    assert (last.type, last.status, last.reason) == ("Ready", "False", "Terminating")
    assert "c" not in addresses(found)
    assert 50 <= removed(found, "ipaddresses", "10.1.0.7")[0] < 50.5


def test_an_address_whose_service_never_came_is_given_back_after_a_minute(tmp_path: Path) -> None:
    labels = "{ipaddress.kubernetes.io/managed-by: ipallocator.k8s.io, ipaddress.kubernetes.io/ip-family: IPv4}"
    parent = "{parentRef: {resource: services, namespace: default, name: nobody}}"
    address = f"{{{NETWORKING}, kind: IPAddress, metadata: {{name: 10.96.0.9, labels: {labels}}}, spec: {parent}}}"
    found = play(tmp_path, f"""
        duration: 90s
        nodes: []
        controllers: [service-cidr]
        events: [{{at: 10s, create: {address}}}]
    """)  # fmt: skip
    assert 70 <= removed(found, "ipaddresses", "10.96.0.9")[0] < 71.5


def test_two_api_servers_never_give_one_address_twice(tmp_path: Path) -> None:
    """Both serve requests while the cache of each is behind."""
    more = "".join(f"        - {{at: 10s, create: {service(f's{n}')}}}\n" for n in range(12))
    found = play(tmp_path, f"""
        duration: 30s
        nodes: []
        controllers: [service-cidr]
        apiServers: {{serviceRanges: [10.0.0.0/28], replicas: 2, cacheLag: 2s}}
        events:
{more}
    """)  # fmt: skip
    made = addresses(found)
    assert len(made) == len(set(made.values())) == 12
