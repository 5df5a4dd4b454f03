"""A run as metrics: the families of the real components, and the numbers that the run log tells in another way."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

import kemu
from kemu.doors.cli import main as cli
from kemu.lab.telemetry.metrics.folds import Fold
from kemu.messages.k8s.core_v1_pb2 import Pod
from kemu.runtime.metrics import texts
from kemu.runtime.metrics.families import COMPONENTS, CONTROLLERS, FAMILIES, KUBELET, STATE
from kemu.runtime.metrics.values import Sample
from kemu.runtime.runlog.events import StoreRecovered, Transaction
from kemu.runtime.runlog.frames import Entry, Reader
from tests.telemetry.metrics import record

HERE = Path(__file__).parent
SCENARIO = HERE / "cluster.yaml"
MEASURING = ("api.served", "workqueue.changed")
SECOND_NS = 10**9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("measured") / "run"
    kemu.run(str(SCENARIO), out=found)
    return found


@pytest.fixture(scope="module")
def events(folder: Path) -> list[Entry]:
    with Reader(folder / "run.kemu") as reader:
        return list(reader)


class At:
    """What Prometheus would parse at a time."""

    def __init__(self, events: list[Entry], second: float) -> None:
        self.events = [one for one in events if one[0] <= second * SECOND_NS and one[2] != "run.ended"]
        fold = Fold()
        for event in self.events:
            fold.feed(*event)
        self.fold = fold
        values = fold.values(round(second * SECOND_NS))
        self.texts = {component: texts.of_component(component, values) for component in COMPONENTS}
        self.samples: dict[str, list[Any]] = {}
        for text in self.texts.values():
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    self.samples.setdefault(record.named(sample.name), []).append(sample)

    def sum(self, name: str, /, **labels: str) -> float:
        return sum(one.value for one in self.samples.get(name, ()) if labels.items() <= one.labels.items())

    def count(self, kind: str, **data: Any) -> int:
        return sum(one[2] == kind and data.items() <= one[3].items() for one in self.events)


@pytest.fixture(scope="module")
def middle(events: list[Entry]) -> At:
    return At(events, 60)


@pytest.fixture(scope="module")
def end(events: list[Entry]) -> At:
    return At(events, 175)


def test_families_are_those_of_the_real_components() -> None:
    real = json.loads((HERE / "real.json").read_text())
    compared = 0
    for family in FAMILIES.values():
        if family.component in (KUBELET, STATE):
            continue
        one = real[family.component][family.name]
        assert (family.type, sorted(family.labels)) == (one["type"], one["labels"]), family.name
        assert list(family.buckets) == pytest.approx(one["buckets"], rel=1e-12), family.name
        compared += 1
    assert compared == sum(map(len, real.values())) > 25


def test_families_of_kubelets_and_of_the_objects_are_those_that_their_documents_declare() -> None:
    declared = json.loads((HERE / "declared.json").read_text())
    for component in (KUBELET, STATE):
        ours = {name: family for name, family in FAMILIES.items() if family.component == component}
        assert {name: (one.type, sorted(one.labels)) for name, one in ours.items()} == {
            name: (one["type"], one["labels"]) for name, one in declared[component].items()
        }


def test_what_is_exposed_has_the_declared_types_labels_and_buckets(end: At) -> None:
    told = 0
    for component, text in end.texts.items():
        for name, one in record.families(text).items():
            family = FAMILIES[name]
            assert family.component == component
            assert one["type"] == family.type, name
            assert set(one["labels"]) - {"instance"} == set(family.labels), name
            assert one["buckets"] == list(family.buckets), name
            told += 1
    other = {"statefulset", "daemonset", "waiting_reason", "apiserver_flowcontrol", "process_cpu_seconds"}
    missing = [name for name in FAMILIES if not any(one in name for one in other)]
    assert told >= len(missing) - 2


def test_work_queues_have_the_names_of_the_real_ones(end: At) -> None:
    real = json.loads((HERE / "real.json").read_text())[CONTROLLERS]["workqueue_adds_total"]["names"]
    told = {one.labels["name"] for one in end.samples["workqueue_adds_total"]}
    assert {"deployment", "replicaset", "resourcequota_primary", "node_lifecycle_controller"} <= told <= set(real)


def test_requests_are_counted_by_verb_and_code(end: At) -> None:
    served = [one[3] for one in end.events if one[2] == "api.served"]
    by_code = Counter(str(one["code"]) for one in served)
    for code, number in by_code.items():
        watches = end.sum("apiserver_request_total", verb="WATCH", code=code)
        assert end.sum("apiserver_request_total", code=code) - watches == number
    assert by_code["403"] == end.count("api.refused", reason="Forbidden") > 0
    binds = end.sum("apiserver_request_total", resource="pods", subresource="binding", code="201", verb="POST")
    assert binds == end.count("sched.bind", ok=True) > 0
    assert end.sum("apiserver_request_duration_seconds_count") == len(served)
    assert end.sum("apiserver_storage_objects") == len(end.fold.stored) > 30
    pods = [key for key in end.fold.stored if key.startswith("/registry/pods/")]
    assert end.sum("apiserver_storage_objects", resource="pods") == len(pods)
    assert end.sum("apiserver_storage_objects", resource="deployments.apps") == 1
    brought = sum(len(one[3]["types"]) for one in end.events if one[2] == "watch.events")
    assert end.sum("apiserver_watch_events_total") == brought


def test_the_scheduler_tells_its_attempts_and_who_waits(middle: At, end: At) -> None:
    attempts = "scheduler_schedule_attempts_total"
    assert end.sum(attempts, result="scheduled") == end.count("sched.bind", ok=True)
    assert end.sum(attempts, result="unschedulable") == end.count("sched.attempt", result="unschedulable") > 0
    assert end.sum("scheduler_scheduling_attempt_duration_seconds_count") == end.sum(attempts)
    assert end.sum("scheduler_preemption_victims_sum") == 1
    assert end.sum("scheduler_pod_scheduling_attempts_count") == end.count("sched.bind", ok=True)
    # At 60 s one is gated, one too big, and nobody else waits.
    waiting = {
        part: middle.sum("scheduler_pending_pods", queue=part)
        for part in ("active", "backoff", "unschedulable", "gated")
    }
    assert waiting == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 1}
    assert middle.sum("scheduler_unschedulable_pods", plugin="NodeResourcesFit") == 1
    failed = middle.sum("scheduler_queue_incoming_pods_total", event="ScheduleAttemptFailure", queue="unschedulable")
    assert failed == middle.count("sched.attempt", result="unschedulable")


def test_controllers_and_kubelets(middle: At, end: At) -> None:
    # The preemption chose the node; the quota refused the third pod, which was tried again.
    assert end.sum("workqueue_retries_total", name="replicaset") >= 1
    taken = end.count("workqueue.changed", what="taken")
    assert end.sum("workqueue_queue_duration_seconds_count") == taken > 0
    assert end.sum("workqueue_depth") == end.sum("workqueue_adds_total") - taken
    assert end.sum("node_collector_evictions_total") == 1
    assert end.sum("taint_eviction_controller_pod_deletions_total") == end.count("taint.eviction") > 0
    assert end.sum("kubelet_evictions", eviction_signal="memory.available") == end.count("kubelet.evicting") > 0
    # c is off: its kubelet tells nothing, and has begun anew at the end.
    assert {one.labels["instance"] for one in middle.samples["kubelet_running_pods"]} == {"a", "b"}
    pods = (Pod.FromString(one) for key, one in middle.fold.stored.items() if key.startswith("/registry/pods/"))
    running = [pod for pod in pods if pod.status.phase == "Running" and pod.spec.nodeName != "c"]
    assert middle.sum("kubelet_running_pods") == len(running) > 5


def test_the_state_of_objects(middle: At) -> None:
    ready = {one.labels["node"]: one.value for one in middle.samples["kube_node_status_condition"]
             if one.labels["condition"] == "Ready" and one.labels["status"] == "true"}  # fmt: skip
    assert ready == {"a": 1, "b": 1, "c": 1}  # a silent node is found after 40 s
    assert middle.sum("kube_pod_status_phase", phase="Pending", pod="too-big") == 1
    assert middle.sum("kube_pod_status_unschedulable") == 1
    assert middle.sum("kube_deployment_spec_replicas", deployment="web") == 8
    assert middle.sum("kube_pod_container_resource_requests", pod="urgent", resource="cpu", unit="core") == 3
    assert middle.sum("kube_node_status_allocatable", node="a", resource="memory", unit="byte") == 8 << 30
    assert middle.sum("kube_poddisruptionbudget_status_desired_healthy") == 1


def test_measuring_changes_nothing_else(tmp_path: Path, events: list[Entry]) -> None:
    text = SCENARIO.read_text().replace("metrics: true", "metrics: false")
    plain = tmp_path / "plain.yaml"
    plain.write_text(text)
    kemu.run(str(plain), out=tmp_path / "run")
    with Reader(tmp_path / "run" / "run.kemu") as reader:
        assert list(reader) == [one for one in events if one[2] not in MEASURING]


def test_a_store_that_loses_writes_loses_their_objects() -> None:
    fold = Fold()
    for revision, name in ((2, "a"), (3, "b")):
        change = [0, f"/registry/namespaces/{name}", b"", revision, 1]
        fold.feed(revision, "store", "store.txn", Transaction(rev=revision, changes=[change]))
    recovered = StoreRecovered(rev=2, replayed=1, torn_bytes=0, key_count=1, digest=0)
    fold.feed(4, "store", "store.recovered", recovered)
    assert list(fold.stored) == ["/registry/namespaces/a"]


def test_a_file_in_openmetrics(folder: Path, end: At, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["metrics", str(folder), "--every", "5s", "--at", "2026-01-31T12:00:00Z"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{folder / 'metrics.om'}: ")
    begin_s = 1769860800
    lines = (folder / "metrics.om").read_text().splitlines()
    assert lines[-1] == "# EOF"
    times: dict[str, list[float]] = {}
    for line in lines:
        if not line.startswith("#"):
            series, _, time = line.rpartition(" ")
            times.setdefault(series.rpartition(" ")[0], []).append(float(time))
    assert all(each == sorted(set(each)) for each in times.values())
    assert min(map(min, times.values())) == begin_s + 5
    # The parser of the client library, which is strict, takes one time of a histogram only. Series have the bounds that
    # components write, where OpenMetrics wants a decimal point.
    last = [line for line in lines if line.startswith("#") or line.endswith(f" {begin_s + 175}.000")]
    strict = re.sub(r'le="(\d+)"', r'le="\1.0"', "\n".join(last) + "\n")
    latest: dict[str, float] = {}
    for family in openmetrics.text_string_to_metric_families(strict):
        for sample in family.samples:
            latest[sample.name] = latest.get(sample.name, 0) + sample.value
    assert {"up", "kubelet_evictions", "apiserver_request_total"} <= set(latest)
    for name, samples in end.samples.items():
        assert latest[name] == pytest.approx(sum(one.value for one in samples)), name
    # c is off from 40 s to 140 s.
    up = [line.split()[1:] for line in lines if line.startswith('up{job="kubelet",instance="c"}')]
    assert [float(time) - begin_s for value, time in up if value == "0"] == [float(at) for at in range(40, 140, 5)]


def test_bad_words(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, text in (
        ((str(tmp_path / "none"),), "no such folder"),
        ((str(folder), "--at", "yesterday"), "write now, or a time"),
        ((str(folder), "--rules", "none.yaml", "--out", "x"), "--rules: writes no file"),
        ((str(folder), "--out", str(tmp_path / "none" / "file")), "No such file or directory"),
    ):
        assert cli.main(["metrics", *words]) == 2
        assert text in capsys.readouterr().err


def test_labels_are_escaped() -> None:
    family = FAMILIES["kubelet_node_name"]
    assert texts.series(family, Sample("", ('a"\\\n',), "", 1), {}) == 'kubelet_node_name{node="a\\"\\\\\\n"}'
