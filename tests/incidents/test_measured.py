"""Usage as people have it: kubectl top, Prometheus, CSV; a leak that was measured kills in the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.doors.cli.main import main
from kemu.lab.incidents import lives, measured
from kemu.lab.incidents.measured import CPU, MEMORY, Series
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner

MI = 2**20
BEGIN = 1_764_380_000


def prometheus(samples: list[tuple[float, float]], **labels: str) -> str:
    values = [[time, str(value)] for time, value in samples]
    metric = {"namespace": "shop", "pod": "web-1", **labels}
    return json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": [{"metric": metric, "values": values}]}}
    )


def test_kubectl_top() -> None:
    text = "NAMESPACE   NAME    CPU(cores)   MEMORY(bytes)\nshop        web-1   250m         300Mi\n"
    assert measured.parse(text) == [
        Series("shop", "web-1", "", CPU, ((0.0, 0.25),)),
        Series("shop", "web-1", "", MEMORY, ((0.0, 300.0 * MI),)),
    ]


def test_kubectl_top_of_containers_in_one_namespace() -> None:
    text = "POD     NAME      CPU(cores)   MEMORY(bytes)\nweb-1   sidecar   1m           20Mi\n"
    assert [(one.namespace, one.pod, one.container) for one in measured.parse(text)] == [
        ("default", "web-1", "sidecar")
    ] * 2


def test_kubectl_top_of_nodes_says_nothing_about_pods() -> None:
    assert (
        measured.parse(
            "NAME     CPU(cores)   CPU%   MEMORY(bytes)   MEMORY%\nnode-1   2            50%    3Gi    40%\n"
        )
        == []
    )


def test_prometheus_tells_memory_by_name_by_file_or_by_amount() -> None:
    by_name = prometheus([(BEGIN, 1.0), (BEGIN + 30, 2.0)], __name__="container_memory_working_set_bytes")
    assert measured.parse(by_name)[0].resource == MEMORY
    assert measured.parse(prometheus([(BEGIN, 0.5)]), "cpu-usage.json")[0].resource == CPU
    assert measured.parse(prometheus([(BEGIN, 5e8)]))[0].resource == MEMORY


def test_a_counter_becomes_a_rate_over_its_restarts() -> None:
    text = prometheus(
        [(0, 10), (10, 15), (20, 1), (30, 3)], __name__="container_cpu_usage_seconds_total", container="web"
    )
    assert measured.parse(text)[0].samples == ((10, 0.5), (20, 0.1), (30, 0.2))


def test_csv_in_any_order_with_units_and_times() -> None:
    text = "Pod;Namespace;Time;Memory (bytes)\nweb-1;shop;2026-11-28T09:00:30Z;300Mi\nweb-1;shop;1795856400;100Mi\n"
    (found,) = measured.parse(text)
    assert found.samples == ((1_795_856_400.0, 100.0 * MI), (1_795_856_430.0, 300.0 * MI))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pod,namespace,memory\nweb-1,shop\n", "2 cells, where the header has 3"),
        ("pod,time,memory\nweb-1,noon,3\n", "'noon' is no time"),
        ('{"status": "error", "error": "too many samples", "resultType": "matrix"}', "too many samples"),
        ('{"data": {"resultType": "scalar", "result": []}}', "holds a scalar"),
    ],
)
def test_mistakes_say_what_and_where(text: str, said: str) -> None:
    with pytest.raises(measured.UsageError, match=said):
        measured.parse(text)


def test_the_whole_pod_does_not_count_beside_its_containers() -> None:
    whole = Series("shop", "web-1", "", MEMORY, ((0.0, 1.0),))
    part = Series("shop", "web-1", "web", MEMORY, ((0.0, 1.0),))
    assert measured.without_totals([whole, part]) == [part]


def test_a_curve_keeps_what_matters() -> None:
    flat = [(BEGIN + 30.0 * n, 100.0 * MI) for n in range(40)]
    ramp = [(BEGIN + 1200 + 30.0 * n, (100.0 + 10 * n) * MI) for n in range(40)]
    peak = [(BEGIN + 2400.0, 2000.0 * MI)]
    curve = lives.curve(Series("shop", "web-1", "", MEMORY, (*flat, *ramp, *peak)), BEGIN)
    points = curve["trace"]
    assert points[0] == {"at": "0s", "value": "100Mi"}
    assert points[-1] == {"at": "2400s", "value": "2000Mi"}
    assert len(points) <= 5
    assert lives.curve(Series("shop", "web-1", "", CPU, ((0.0, 0.2), (1.0, 0.21), (2.0, 0.2))), 0.0) == "200m"


def test_what_deployments_and_cron_jobs_make_next_lives_alike() -> None:
    def pod(kind: str, name: str) -> dict[str, Any]:
        return {"metadata": {"ownerReferences": [{"kind": kind, "name": name, "controller": True}]}}

    assert lives.owner_of(pod("ReplicaSet", "web-5ffb749f6")) == "ReplicaSet/web-*"
    assert lives.owner_of(pod("Job", "backup-29401500")) == "Job/backup-*"
    assert lives.owner_of(pod("Job", "migrate")) == "Job/migrate"
    assert lives.owner_of(pod("DaemonSet", "agent")) == "DaemonSet/agent"


def test_a_leak_that_was_measured_kills_in_the_run(tmp_path: Path) -> None:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "agent",
        "uid": "0b9b0f0e-8d6f-4c0c-9a6a-0d5a4b7c7f10",
    }
    limits = {"requests": {"memory": "100Mi"}, "limits": {"memory": "500Mi"}}
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "agent", "image": "agent:1", "resources": limits}]},
    }
    server = {"uid": owner["uid"], "resourceVersion": "5"}
    dump = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "resourceVersion": "1"},
         "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}}},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "shop", **server},
         "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template}},
        {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": "agent-abcde", "namespace": "shop", "labels": {"app": "agent"}, "resourceVersion": "7",
                      "ownerReferences": [{**owner, "controller": True}]},
         "spec": {"nodeName": "node-1", **template["spec"]}, "status": {"phase": "Running"}},
    ]  # fmt: skip
    (tmp_path / "dump.yaml").write_text(yaml.safe_dump_all(dump))
    leak = [(BEGIN + 60.0 * n, (50 + 20 * n) * MI) for n in range(30)]
    (tmp_path / "memory.json").write_text(prometheus(leak, pod="agent-abcde", container="agent"))
    words = [
        "import",
        str(tmp_path / "dump.yaml"),
        "--usage",
        str(tmp_path / "memory.json"),
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(words) == 0
    loaded = loader.load(tmp_path / "out" / "scenario.yaml")
    assert "trace" in (tmp_path / "out" / "scenario.yaml").read_text()
    (result,) = runner.run_all(loaded, runner.Options(out=tmp_path / "run"))[1]
    assert result.verdict["counts"]["oom_kills"] >= 1
