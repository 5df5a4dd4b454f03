"""The table of kinds, the small helpers on metadata, times and names."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.emulated.objects import meta, names, resources, times
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2, meta_v1_pb2

POD = resources.BY_PLURAL["pods"]
NODE = resources.BY_KIND["Node"]


def test_keys() -> None:
    assert resources.key(POD, "default", "a") == b"/registry/pods/default/a"
    assert resources.key(NODE, "", "n1") == b"/registry/nodes/n1"
    assert resources.prefix(POD) == b"/registry/pods/"
    assert resources.prefix(POD, "default") == b"/registry/pods/default/"


@pytest.mark.parametrize("row", resources.RESOURCES, ids=lambda row: row.kind)
def test_every_row_can_be_found_by_all_its_names(row: resources.Resource) -> None:
    assert resources.of(row.message()) is row
    for name in (row.plural, row.kind, row.kind.lower(), *row.short_names):
        assert resources.find(name) is row
    assert row.has_status == ("status" in row.message.DESCRIPTOR.fields_by_name)
    assert resources.find("nothing") is None


def test_groups() -> None:
    assert (POD.group, POD.qualified) == ("", "pods")
    lease = resources.BY_KIND["Lease"]
    assert (lease.group, lease.qualified) == ("coordination.k8s.io", "leases.coordination.k8s.io")


def test_times_in_objects() -> None:
    time = meta_v1_pb2.Time(nanos=3)
    meta.set_time(time, 1_500_000_001)
    assert time == meta_v1_pb2.Time(seconds=1)
    micro = meta_v1_pb2.MicroTime()
    meta.set_time(micro, 1_500_000_001)
    assert (micro.seconds, micro.nanos) == (1, 500_000_000)
    assert meta.unix_ns(micro) == 1_500_000_000


@given(st.integers(-62_135_596_800, 253_402_300_799))
def test_times_as_text(unix_s: int) -> None:
    assert times.parse_time(times.format_time(unix_s)) == unix_s * 1_000_000_000


@pytest.mark.parametrize(
    "text",
    ["", "2000-01-01", "2000-01-01T00:00:00", "20000101T000000Z", "2000-02-30T00:00:00Z", " 2000-01-01T00:00:00Z"],
)
def test_texts_that_are_no_times(text: str) -> None:
    with pytest.raises(ValueError, match="must be a time such as"):
        times.parse_time(text)


def test_times_beyond_four_digits_are_cut() -> None:
    assert times.format_time(10**18) == "9999-12-31T23:59:59Z"
    assert times.format_time(-(10**18)) == "0001-01-01T00:00:00Z"


def test_names_of_objects() -> None:
    pod = core_v1_pb2.Pod(metadata=meta_v1_pb2.ObjectMeta(name="a", namespace="default"))
    node = core_v1_pb2.Node(metadata=meta_v1_pb2.ObjectMeta(name="n"))
    assert (meta.namespaced_name(pod), meta.namespaced_name(node)) == ("default/a", "n")
    assert (meta.split_name("default/a"), meta.split_name("n")) == (("default", "a"), ("", "n"))


def test_owners() -> None:
    owner = apps_v1_pb2.ReplicaSet(metadata=meta_v1_pb2.ObjectMeta(name="r", uid="1"))
    pod = core_v1_pb2.Pod()
    assert meta.controller_of(pod) is None
    pod.metadata.ownerReferences.append(meta.owner_reference(owner, "v1", "Node", controller=False))
    assert meta.controller_of(pod) is None
    pod.metadata.ownerReferences.append(meta.owner_reference(owner, "apps/v1", "ReplicaSet"))
    controller = meta.controller_of(pod)
    assert controller is not None
    assert (controller.kind, controller.name, controller.uid) == ("ReplicaSet", "r", "1")


def test_conditions() -> None:
    pod = core_v1_pb2.Pod()
    conditions = pod.status.conditions
    assert meta.set_condition(conditions, "Ready", "False", "Waiting", "for it", 5_000_000_000)
    assert not meta.set_condition(conditions, "Ready", "False", "Waiting", "for it", 6_000_000_000)
    assert meta.set_condition(conditions, "Ready", "False", "Waiting", "", 7_000_000_000)
    ready = meta.get_condition(conditions, "Ready")
    assert ready is not None
    assert ready.lastTransitionTime.seconds == 5
    assert not ready.HasField("message")
    assert meta.set_condition(conditions, "Ready", "True", "", "", 8_000_000_000)
    assert ready.lastTransitionTime.seconds == 8
    assert meta.has_condition(conditions, "Ready")
    assert not meta.has_condition(conditions, "Other")
    assert len(conditions) == 1


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (names.dns_label, ["a", "a-1", "1"], ["", "A", "-a", "a-", "a.b", "a_b", "a" * 64, "ä"]),
        (names.dns_subdomain, ["a", "a.b-c.d"], ["", "a..b", ".a", "A.b", "a" * 254]),
        (names.dns_1035_label, ["a", "a-1"], ["", "1a", "a.b", "a" * 64]),
        (names.label_key, ["a", "A_b.c-d", "a.b/c", "1"], ["", "/a", "a/", "a/b/c", "A/b", "-a", "a" * 64, "a b"]),
        (names.label_value, ["", "a", "A_b.c-d", "007"], ["-", "a-", "a/b", "a b", "a" * 64, "a\n"]),
        (names.port_name, ["http", "a-1"], ["", "80", "A", "a--b", "-a", "a-", "a" * 16]),
    ],
)
def test_syntax_of_names(rule: Callable[[str], names.Messages], good: list[str], bad: list[str]) -> None:
    assert [text for text in good if rule(text)] == []
    assert [text for text in bad if not rule(text)] == []


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("007", 7), ("-7", -7), ("+7", 7), (str(2**63), None), (str(-(2**63)), -(2**63)), ("", None)],
)
def test_numbers_as_go_reads_them(text: str, number: int | None) -> None:
    assert names.int64(text) == number


@pytest.mark.parametrize("text", ["1_000", " 1", "0x1", "1.0", "--1", "\u0661", "-", "9" * 5000])
def test_texts_that_go_does_not_read_as_numbers(text: str) -> None:
    assert names.int64(text) is None
