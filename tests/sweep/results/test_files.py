"""The Parquet file: the same bytes for the same cells, and what others read in it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kemu.errors import KemuError
from kemu.lab.checks.scheduling import waiting
from kemu.lab.scenario import evidence
from kemu.lab.scenario.expectations import METRICS
from kemu.lab.sweep.results import files, rows, tables
from tests.sweep.results import runs


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return files.write(tmp_path, runs.records(), runs.PATHS, {"name": "small"})


def test_the_same_cells_give_the_same_bytes_in_whatever_order_they_ended(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    again = files.write(other, reversed(runs.records()), runs.PATHS, {"name": "small"})
    assert again.read_bytes() == file.read_bytes()


def test_metrics_are_those_of_expectations(file: Path) -> None:
    done, kept = runs.execution()
    for name in METRICS:
        assert kept.run[name] == evidence.metric(done.history, name, None)
        for group in kept.run["priorities"]:
            if name in tables.names(tables.BY_PRIORITY):
                assert group[name] == evidence.metric(done.history, name, group["priority"])
    assert done.verdict["counts"].items() <= kept.run.items()


def test_a_figure_is_a_lower_bound_where_a_pod_that_still_waits_could_raise_it() -> None:
    done, kept = runs.execution()
    high, low = kept.run["priorities"]
    assert (high["priority"], high["unbound"], high["lower_bounds"]) == (1000, 0, [])
    assert (low["priority"], low["unbound"]) == (10, 1)
    group = [wait for wait in waiting.waits(done.history) if wait.pod.priority == 10]
    told = [name.removeprefix("waiting.") for name in low["lower_bounds"] if name.startswith("waiting.")]
    assert told == waiting.describe(group)["censored"] == ["p99_s", "max_s"]
    assert {"running.max_s", "overtaken.max"} <= set(low["lower_bounds"])


def test_a_percentile_has_an_upper_bound_where_few_pods_still_wait() -> None:
    """Of five waits the median is the third, whatever the pod that still waits comes to."""
    history = runs.execution()[0].history
    pod = waiting.waits(history)[0].pod

    def median(*seconds_and_bound: tuple[float, bool]) -> tuple[bool, float | None]:
        waits = [waiting.Wait(pod, seconds, bound, 0) for seconds, bound in seconds_and_bound]
        found = rows._bounds(history, waits)
        return "waiting.p50_s" in found["lower_bounds"], found["upper_bounds"].get("waiting.p50_s")

    assert median((1, True), (2, False), (3, True), (4, True), (5, True)) == (True, 4)
    assert median((1, True), (2, False), (3, True), (3, True), (5, True)) == (False, None)
    assert median((1, True), (2, True), (3, True), (4, False), (5, True)) == (False, None)
    assert median((1, False), (2, False), (3, False), (4, True), (5, True)) == (True, None)


def test_rows_say_what_happened() -> None:
    found = rows.nested(runs.execution()[1])
    pods = {
        name: {key: found["pods"][key][place] for key in found["pods"]}
        for place, name in enumerate(found["pods"]["name"])
    }
    assert pods["running"]["waited_s"] is None
    assert pods["low"]["preempted_by"] == "default/high"
    assert pods["low"]["reason"] == "Preempted"
    assert (pods["high"]["node"], pods["high"]["censored"]) == ("node-1", False)
    assert pods["high"]["created_s"] + pods["high"]["waited_s"] == pytest.approx(pods["high"]["bound_s"])
    assert (pods["starved"]["censored"], pods["starved"]["bound_s"], pods["starved"]["phase"]) == (
        True,
        None,
        "Pending",
    )
    attempts = found["attempts"]
    assert len(attempts["uid"]) == sum(pod["attempts"] for pod in pods.values())
    refused = [
        plugins
        for name, plugins in zip(attempts["pod"], attempts["refused_nodes"], strict=True)
        if name == "default/starved"
    ]
    assert refused[0] == {"NodeResourcesFit": 1}
    assert (found["faults"]["kind"], found["faults"]["from_s"], found["faults"]["to_s"]) == (["delay"], [1.0], [3.0])
    assert found["faults"]["hits"] == [["apiserver/0 → kubelet/node-1"]]
    assert (found["nodes"]["name"], found["nodes"]["cpu_milli"]) == (["node-1"], [4000])


def test_reading_gives_back_the_runs(file: Path) -> None:
    found = files.read(file)
    assert found.head.axes == {runs.PATHS[0]: "queue", runs.PATHS[1]: "replicas"}
    assert found.head.about == {"name": "small"}
    for read, written in zip(found.records, runs.records(), strict=True):
        assert (read.cell, read.status, read.detail) == (written.cell, written.status, written.detail)
        if written.rows is None:
            assert read.rows is None
        else:
            assert read.rows is not None
            assert written.rows.run.items() <= read.rows.run.items()


def test_a_column_is_named_by_the_whole_path_where_the_last_part_is_taken() -> None:
    assert tables.axis_columns(["a.queue", "b.queue", "workloads[0].priority", "load", "x.rate", "nodes[0].count"]) == {
        "a.queue": "a.queue",
        "b.queue": "b.queue",
        "workloads[0].priority": "workloads[0].priority",
        "load": "load",
        "x.rate": "rate",
        "nodes[0].count": "count",
    }
    assert tables.axis_columns(["seed", "nodes", "x.y"]) == {"nodes": "vary.nodes", "x.y": "y"}


def test_a_damaged_file_is_an_error_of_the_input(tmp_path: Path) -> None:
    file = tmp_path / files.FILE_NAME
    file.write_bytes(b"PAR1 and no more")
    with pytest.raises(KemuError, match="not a file of results"):
        files.read(file)


def test_data_frames_read_it(file: Path) -> None:
    polars, pandas, duckdb = (pytest.importorskip(name) for name in ("polars", "pandas", "duckdb"))
    names = pq.read_schema(file).names
    assert len(set(names)) == len(names)
    frame = polars.read_parquet(file)
    assert frame.columns == names
    assert frame["pods"].list.len().to_list() == [4, 4, 4, 0]
    assert frame["replicas"].to_list() == [1, 1, 2, 2]
    pods = frame.select("seed", "pods").explode("pods").unnest("pods").filter(polars.col("censored"))
    assert pods["name"].to_list() == ["starved"] * 3
    table = pandas.read_parquet(file)
    assert list(table["queue"]) == ["fifo", "fifo", "priority", "priority"]
    assert [len(each) for each in table["faults"]] == [1, 1, 1, 0]
    asked = duckdb.sql(f"SELECT queue, sum(len(attempts)) FROM '{file}' GROUP BY queue ORDER BY queue").fetchall()
    assert asked[0][1] == 2 * asked[1][1]


def test_every_column_is_explained() -> None:
    nested = (column for columns in tables.NESTED.values() for column in columns)
    columns = [*tables.IDENTITY, *tables.RUN, *tables.METRICS, *nested]
    assert [column.name for column in columns if not column.doc] == []
