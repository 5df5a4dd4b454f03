"""Ranges of Services' addresses, in virtual time: what is full, what goes, what is mended."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from kemu import errors
from kemu.emulated.apiserver.admission import services
from kemu.emulated.controllers.services import ranges
from kemu.emulated.objects.kinds import service_ranges
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


def made_range(name: str, *cidrs: str) -> networking_v1_pb2.ServiceCIDR:
    made = networking_v1_pb2.ServiceCIDR()
    made.metadata.name = name
    made.spec.cidrs.extend(cidrs)
    return made


@pytest.mark.parametrize(
    ("others", "addresses", "may_go"),
    [
        (None, [], True),
        ([], [], True),
        ([], ["192.168.0.24"], False),
        ([], ["192.168.1.24"], True),
        ([], ["192.168.0.0"], True),
        ([], ["192.168.0.255"], True),
        ([], ["2001:db2::ffff:ffff:ffff:ffff"], False),
        (["192.168.0.0/24"], ["192.168.0.23"], True),
        (["192.168.0.0/26"], ["192.168.0.23"], True),
        (["192.168.0.0/28"], ["192.168.0.23"], False),
        (["192.168.0.0/16"], ["192.168.0.23"], True),
    ],
)
def test_a_range_may_go_as_in_kubernetes(others: list[str] | None, addresses: list[str], may_go: bool) -> None:
    """The cases of ``TestController_canDeleteCIDR``. ``others``: None: not even the range itself is known."""
    one = made_range("kubernetes", "192.168.0.0/24", "2001:db2::/64")
    known = [] if others is None else [one, *(made_range("other", cidr, "2001:db2::/64") for cidr in others)]
    owner = core_v1_pb2.Service()
    assert ranges.may_go(one, known, [service_ranges.of_service(name, owner) for name in addresses]) == may_go


@pytest.mark.parametrize(
    ("cidr", "static", "size"),
    [
        ("192.168.1.1/32", 0, 0), ("fd00::1/128", 0, 0), ("192.168.1.0/31", 0, 0), ("192.168.1.0/30", 0, 2),
        ("fd00::/126", 0, 3), ("192.168.1.0/28", 0, 14), ("192.168.1.0/27", 16, 30), ("fd00::/124", 0, 15),
        ("fd00::/122", 16, 63), ("192.168.0.0/22", 64, 1022), ("fd00::/118", 64, 1023), ("10.0.0.0/8", 256, 2**24 - 2),
        ("fd00::/64", 256, 2**64 - 1),
    ],
)  # fmt: skip
def test_the_lower_band_is_as_large_as_in_kubernetes(cidr: str, static: int, size: int) -> None:
    """Cases of ``Test_calculateRangeOffset`` and ``Test_hostsPerNetwork``."""
    found = services.Range(cidr, True)
    assert (found.offset - found.first, max(found.end - found.first, 0)) == (static, size)


def test_the_upper_band_comes_first_and_no_address_comes_twice() -> None:
    found = list(services.Range("192.168.1.0/27", True).in_turn(random.Random(1)))
    upper, lower = ([f"192.168.1.{n}" for n in numbers] for numbers in (range(17, 31), range(1, 17)))
    assert sorted(found[:14]) == sorted(upper)
    assert sorted(found[14:]) == sorted(lower)
    assert found[:14] != upper


def test_what_these_tests_are_for_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a range goes at once, and an address counts as free that another API server has given."""
    monkeypatch.setattr(ranges, "GRACE_S", 0)
    with pytest.raises(AssertionError):
        test_a_range_goes_when_its_addresses_are_in_another_one_or_nobodys(tmp_path / "range")
    create = services.Services._create

    async def careless(self: services.Services, name: str, service: core_v1_pb2.Service) -> None:
        with contextlib.suppress(errors.AlreadyExists):
            await create(self, name, service)

    monkeypatch.setattr(services.Services, "_create", careless)
    with pytest.raises(AssertionError):
        test_two_api_servers_never_give_one_address_twice(tmp_path / "servers")
