"""What the real Prometheus makes of a run: its blocks, its rules, the queries of the dashboard."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import kemu
from kemu.doors.cli import main as cli
from kemu.lab.telemetry.metrics import files, rules
from kemu.runtime.metrics.families import FAMILIES
from tests.telemetry.metrics import prometheus

ROOT = Path(__file__).parents[3]
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yaml"
DASHBOARD = ROOT / "deploy" / "grafana" / "kemu.json"
EVERY_S = 5.0

FIRES = {
    "chaos/scheduler-crash": {"KubeSchedulerDown"},
    "chaos/apiserver-crash": {"KubeAPIDown"},
    "chaos/slow-disk": {"KubeAPISlowWrites", "KubeSchedulerSlow"},
    "chaos/overload": {"KubeAPITerminatedRequests", "KubeSchedulerSlow"},
    "chaos/zone-outage": {"KubeletDown", "KubeNodeNotReady", "KubeZoneUnhealthy"},
    # Machines that are back before anybody misses them.
    "chaos/machine-crash": set(),
}
"""By scenario: the alerts that fire, and no others."""


@pytest.mark.parametrize("scenario", FIRES)
def test_alerts_fire_where_they_should_and_nowhere_else(scenario: str, tmp_path: Path) -> None:
    prometheus.program("promtool")
    kemu.run(scenario, out=tmp_path / "run", settings={"metrics": True})
    found = rules.fired(files.read(tmp_path / "run", EVERY_S).series.all(), ALERTS, EVERY_S)
    assert {one.alert for one in found} == FIRES[scenario]
    for one in found:
        if one.alert == "KubeNodeNotReady":
            # 40 s after its last heartbeat, which was before 60 s, and the alert waits for 15 s.
            assert one.labels["node"] in ("a-1", "a-2", "a-3")
            assert (one.first_s, one.last_s) == (120, 240)


UNITS = {"short", "s", "ops", "reqps", "percent", "percentunit"}
"""Those of Grafana's that are used, by their ids."""


def complaints(board: dict[str, Any]) -> list[str]:
    """Of the rules of Grafana's dashboard-linter those that a dashboard of one small cluster has to keep: it needs no
    variables for job and instance."""
    found = [] if isinstance(board["schemaVersion"], int) and not board["editable"] else ["the dashboard can be edited"]
    (source,) = (one for one in board["templating"]["list"] if one["type"] == "datasource")
    if (source["name"], source["query"], source["label"]) != ("datasource", "prometheus", "Data source"):
        found.append("the variable of the data source")
    ids = [panel["id"] for panel in board["panels"]]
    if len(set(ids)) != len(ids):
        found.append("two panels with one id")
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        if cells & taken or place["x"] + place["w"] > 24:
            found.append(f"{panel['title']}: its place")
        taken |= cells
        if not panel["title"] or panel["type"] == "row":
            continue
        if panel["datasource"] != {"type": "prometheus", "uid": "${datasource}"}:
            found.append(f"{panel['title']}: its data source")
        if panel["fieldConfig"]["defaults"]["unit"] not in UNITS:
            found.append(f"{panel['title']}: its unit")
        refs = [one["refId"] for one in panel["targets"]]
        if len(set(refs)) != len(refs):
            found.append(f"{panel['title']}: two queries with one letter")
        for one in panel["targets"]:
            ranges = re.findall(r"\[([^\]]+)\]", one["expr"])
            if set(ranges) - {"$__rate_interval"}:
                found.append(f"{panel['title']}: rate over {ranges}")
            known = {family for family in FAMILIES if family in one["expr"]}
            if not known and "up" not in one["expr"]:
                found.append(f"{panel['title']}: a metric that nobody tells")
    return found


def test_the_dashboard_keeps_the_rules_of_grafanas_linter() -> None:
    board = json.loads(DASHBOARD.read_text())
    assert complaints(board) == []
    panels = board["panels"]
    broken = [
        ("rate over", lambda: panels[7]["targets"][0].update(expr="rate(workqueue_adds_total[5m])")),
        ("its unit", lambda: panels[8]["fieldConfig"]["defaults"].update(unit="seconds")),
        ("its data source", lambda: panels[9].update(datasource={"type": "prometheus", "uid": "mine"})),
        ("two panels", lambda: panels[1].update(id=panels[2]["id"])),
        ("its place", lambda: panels[10]["gridPos"].update(y=0)),
        ("can be edited", lambda: board.update(editable=True)),
    ]
    for number, (told, spoil) in enumerate(broken, 1):
        spoil()
        assert len(complaints(board)) >= number, told
        assert any(told in one for one in complaints(board))


def test_every_query_of_the_dashboard_finds_something(tmp_path: Path) -> None:
    prometheus.program("prometheus")
    kemu.run(str(Path(__file__).parent / "cluster.yaml"), out=tmp_path / "run")
    look = files.read(tmp_path / "run", EVERY_S)
    written = files.write(look, tmp_path / "run.om")
    told = prometheus.run("tsdb", "create-blocks-from", "openmetrics", str(tmp_path / "run.om"), str(tmp_path / "data"))
    assert str(written.samples) in told
    queries = [one["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for one in panel.get("targets", ())]
    assert len(queries) > 25
    with prometheus.serving(tmp_path / "data") as server:
        for query in queries:
            # What a dashboard shows as 0 where there is nothing would never be empty.
            bare = query.replace(" or vector(0)", "").replace("$__rate_interval", "1m")
            found = server.range(bare, written.begin_s, written.end_s, EVERY_S)
            assert any(value != "NaN" for series in found for _, value in series["values"]), query


def test_the_files_that_are_shipped_are_valid() -> None:
    assert "16 rules found" in prometheus.run("check", "rules", str(ALERTS))
    assert "SUCCESS" in prometheus.run("check", "config", str(ALERTS.parent / "prometheus.yaml"))


def test_bad_rules_are_told_with_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prometheus.program("promtool")
    kemu.run("races/two-schedulers-one-node", out=tmp_path / "run")
    bad = tmp_path / "bad.yaml"
    bad.write_text('groups: [{name: x, rules: [{alert: A, expr: "a b"}]}]\n')
    assert cli.main(["metrics", str(tmp_path / "run"), "--rules", str(bad)]) == 2
    assert 'group "x", rule 1, "A": could not parse expression' in capsys.readouterr().err
    bad.write_text('groups: [{name: x, rules: [{alert: Always, expr: "vector(1)"}]}]\n')
    assert cli.main(["metrics", str(tmp_path / "run"), "--rules", str(bad)]) == 0
    told = capsys.readouterr()
    assert "Always fires until" in told.out
    assert "without apiserver_request_…" in told.err
