"""Tables of lists, single objects and watches, and what comes with their rows."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kemu.emulated.gateway.tables import tables, texts
from kemu.emulated.objects import resources
from kemu.messages.k8s import rbac_v1_pb2
from tests.gateway import gateway_cluster
from tests.gateway.gateway_cluster import Cluster

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
SECOND_NS = 1_000_000_000


async def create(cluster: Cluster, name: str) -> Any:
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "labels": {"app": "x"}}}
    return (await cluster.http.post(MAPS, json={**body, "data": {"k": "v"}})).json()


def test_lists_and_single_objects_are_tables_with_the_metadata_of_their_objects() -> None:
    async def main(cluster: Cluster) -> None:
        made = [await create(cluster, name) for name in ("a", "b", "c")]
        answer = await cluster.http.get(MAPS, params={"limit": "2"}, headers=TABLE)
        assert answer.headers["content-type"] == "application/json"
        listed = answer.json()
        assert (listed["kind"], listed["apiVersion"]) == ("Table", "meta.k8s.io/v1")
        assert listed["metadata"].keys() == {"resourceVersion", "continue", "remainingItemCount"}
        assert [column["name"] for column in listed["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert [row["cells"][:2] for row in listed["rows"]] == [["a", 1], ["b", 1]]
        partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made[0]["metadata"]}
        assert listed["rows"][0]["object"] == partial
        single = (await cluster.http.get(f"{MAPS}/a", headers=TABLE)).json()
        assert single["metadata"] == {"resourceVersion": made[0]["metadata"]["resourceVersion"]}
        assert len(single["rows"]) == 1

    gateway_cluster.run(main)


def test_rows_come_with_whole_objects_or_with_none() -> None:
    async def main(cluster: Cluster) -> None:
        made = await create(cluster, "a")
        found = {}
        for include in ("Object", "None"):
            answer = await cluster.http.get(MAPS, params={"includeObject": include}, headers=TABLE)
            found[include] = answer.json()["rows"][0]["object"]
        assert found == {"Object": made, "None": None}
        refused = await cluster.http.get(MAPS, params={"includeObject": "All"}, headers=TABLE)
        assert (refused.status_code, refused.json()["reason"]) == (400, "BadRequest")

    gateway_cluster.run(main)


def test_only_the_first_event_of_a_watch_has_columns() -> None:
    async def main(cluster: Cluster) -> None:
        first = await create(cluster, "a")
        params = {"watch": "true", "resourceVersion": first["metadata"]["resourceVersion"], "timeoutSeconds": "1"}
        watching = asyncio.create_task(cluster.connection(2).get(MAPS, params=params, headers=TABLE))
        await asyncio.sleep(0.1)
        for name in ("b", "c"):
            await create(cluster, name)
        events = [json.loads(line) for line in (await watching).text.splitlines()]
        assert [(one["type"], one["object"]["rows"][0]["cells"][0]) for one in events] == [
            ("ADDED", "b"),
            ("ADDED", "c"),
        ]
        assert events[0]["object"]["columnDefinitions"]
        assert events[1]["object"]["columnDefinitions"] is None
        assert events[1]["object"]["metadata"].keys() == {"resourceVersion"}

    gateway_cluster.run(main)


def test_a_kind_without_a_printer_shows_when_it_was_created() -> None:
    role = rbac_v1_pb2.Role()
    role.metadata.name = "reader"
    role.metadata.creationTimestamp.seconds = 946_684_800
    assert [(column["name"], column["type"]) for column in tables.columns(resources.BY_KIND["Role"])] == [
        ("Name", "string"),
        ("Created At", "date"),
    ]
    assert tables.cells(resources.of(role), role, 0)["cells"] == ["reader", "2000-01-01T00:00:00Z"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-2, "<invalid>"), (-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (599, "9m59s"), (600, "10m"), (10_800, "3h"),
     (28_799, "7h59m"), (172_799, "47h"), (172_800, "2d"), (691_200, "8d"), (63_072_000, "2y"), (315_360_000, "10y")],
)  # fmt: skip
def test_durations_have_two_or_three_figures(seconds: int, text: str) -> None:
    assert texts.duration(seconds * SECOND_NS) == text
