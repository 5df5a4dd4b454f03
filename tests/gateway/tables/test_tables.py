"""Tables of lists, single objects and watches, and what comes with their rows."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.gateway.tables import tables, texts
from kemu.k8s import core_v1_pb2, rbac_v1_pb2
from kemu.objects.conversion import convert

NOW_NS = 1_000_000_000_000_000_000
SECOND_NS = 1_000_000_000


def config_map(name: str = "a") -> Any:
    metadata = {"name": name, "namespace": "default", "resourceVersion": "7", "labels": {"app": "x"}}
    return convert.from_json(core_v1_pb2.ConfigMap, {"metadata": metadata, "data": {"k": "v"}})


def test_a_list_has_columns_and_the_metadata_of_its_objects() -> None:
    listed = tables.table(core_v1_pb2.ConfigMap, [config_map(), config_map("b")], NOW_NS, {"resourceVersion": "9"})
    assert (listed["kind"], listed["apiVersion"], listed["metadata"]) == (
        "Table",
        "meta.k8s.io/v1",
        {"resourceVersion": "9"},
    )
    assert [column["name"] for column in listed["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert [row["cells"] for row in listed["rows"]] == [["a", 1, "<unknown>"], ["b", 1, "<unknown>"]]
    assert listed["rows"][0]["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "a", "namespace": "default", "resourceVersion": "7", "labels": {"app": "x"}},
    }


def test_a_single_object_gives_the_table_its_resource_version() -> None:
    assert tables.table(core_v1_pb2.ConfigMap, [config_map()], NOW_NS)["metadata"] == {"resourceVersion": "7"}


def test_later_events_of_a_watch_have_no_columns() -> None:
    event = tables.table(core_v1_pb2.ConfigMap, [config_map()], NOW_NS, with_columns=False)
    assert event["columnDefinitions"] is None
    assert len(event["rows"]) == 1


def test_rows_come_with_whole_objects_or_with_none() -> None:
    assert tables.row(config_map(), NOW_NS, tables.Include.NONE)["object"] is None
    whole = tables.row(config_map(), NOW_NS, tables.Include.OBJECT)["object"]
    assert (whole["kind"], whole["apiVersion"], whole["data"]) == ("ConfigMap", "v1", {"k": "v"})


def test_a_kind_without_a_printer_shows_when_it_was_created() -> None:
    role = rbac_v1_pb2.Role()
    role.metadata.name = "reader"
    role.metadata.creationTimestamp.seconds = 946_684_800
    table = tables.table(rbac_v1_pb2.Role, [role], NOW_NS)
    assert [(column["name"], column["type"]) for column in table["columnDefinitions"]] == [
        ("Name", "string"),
        ("Created At", "date"),
    ]
    assert table["rows"][0]["cells"] == ["reader", "2000-01-01T00:00:00Z"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-2, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (599, "9m59s"), (600, "10m"), (10_800, "3h"),
     (28_799, "7h59m"), (172_799, "47h"), (172_800, "2d"), (691_200, "8d"), (63_072_000, "2y"), (315_360_000, "10y")],
)  # fmt: skip
def test_durations_have_two_or_three_figures(seconds: int, text: str) -> None:
    assert texts.duration(seconds * SECOND_NS) == text
