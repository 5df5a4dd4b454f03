"""Against the real Jaeger: what its query API answers after a run in which somebody was preempted."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli.main import main
from kemu.lab.scenario import catalog
from kemu.lab.telemetry import exports, otlp, waterfall
from kemu.runtime.runlog.frames import FILE_NAME, Reader
from tests.telemetry import jaeger
from tests.telemetry.logs import RUN, preemption, spans_of, uid_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(jaeger.BUILD_TIMEOUT_S + 300)]


@dataclass(frozen=True)
class Sent:
    folder: Path
    name: str
    """``kemu.run``."""
    pods: int


@pytest.fixture(scope="module", autouse=True)
def _jaeger() -> Iterator[None]:
    with jaeger.running():
        yield


def _links(span: dict[str, Any]) -> set[str]:
    """Trace ids of its links: Jaeger has them as references beside that to the parent."""
    return {each["traceID"] for each in span["references"] if each["refType"] == "FOLLOWS_FROM"}


def test_a_log_made_by_hand(tmp_path: Path) -> None:
    log = preemption()
    report = otlp.export_run(log.write(tmp_path), jaeger.OTLP)
    made = spans_of(log.events)
    assert (report.sent, report.dropped) == (len(made), 0)
    expected = {f"{span.span_id:016x}": span.name for span in made if span.pod == "default/c"}
    found = jaeger.trace(RUN.trace_id(uid_of("c")), len(expected))
    assert {span["spanID"]: span["operationName"] for span in found} == expected
    assert not [span["warnings"] for span in found if span["warnings"]]


SCENARIOS = ("seeds/preemption-example-1", "renamed", "races/two-schedulers-one-node", "races/two-replicas-same-pods")


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sent]:
    """Scenarios of one seed, in one Jaeger, as if they had just ended."""
    place = tmp_path_factory.mktemp("sent")
    (place / "renamed.yaml").write_text(
        catalog.find(SCENARIOS[0]).read_text().replace("name: preemption-example-1", "name: renamed")
    )
    # In a Jaeger that stays, another seed's runs are others.
    seed = str(secrets.randbelow(1 << 31))
    manner = exports.Manner(at=exports.Moment(time.time_ns(), is_end=True), api_calls=True)
    found = {}
    for name in SCENARIOS:
        scenario = str(place / "renamed.yaml") if name == "renamed" else name
        folder = place / name.rpartition("/")[2]
        assert main(["run", scenario, "--seed", seed, "--json", "--out", str(folder)]) == 0
        report = otlp.export_run(folder, jaeger.OTLP, manner)
        assert report.dropped == 0
        with Reader(folder / FILE_NAME) as reader:
            requests = [event.data for event in reader if event.kind == "api.request"]
        pods = sum((each["verb"], each["resource"]) == ("create", "pods") for each in requests)
        found[folder.name] = Sent(folder, report.run.name, pods)
    until = time.monotonic() + 15
    for one in found.values():
        while len(jaeger.search("user", "pod", kemu__run=one.name)) < one.pods and time.monotonic() < until:
            time.sleep(0.25)
    return found


def test_two_runs_with_the_same_uids_are_separate_traces(sent: dict[str, Sent]) -> None:
    first, second = sent["preemption-example-1"], sent["renamed"]
    assert waterfall.load(first.folder, "a").uid == waterfall.load(second.folder, "a").uid, "UIDs follow from the seed"
    for name, one in sent.items():
        traces = jaeger.search("user", kemu__run=one.name)
        assert len(traces) == one.pods
        for spans in traces.values():
            assert {span["resource"]["kemu.run"] for span in spans} == {one.name}
            assert {span["resource"]["kemu.scenario"] for span in spans} == {name}
            assert len({span["attributes"]["k8s.pod.uid"] for span in spans}) == 1
            assert max(span["startTime"] for span in spans) - min(span["startTime"] for span in spans) < 600 * 10**6


def test_the_trace_of_a_preemptor(sent: dict[str, Sent]) -> None:
    run = sent["preemption-example-1"].name
    (c,) = jaeger.search("scheduler default-scheduler", "preemption", kemu__run=run, k8s__pod__name="c").values()
    assert {
        "pod", "api create", "admission", "queue active", "queue unschedulable", "attempt", "preemption", "nomination",
        "bind", "api bind", "binding", "kubelet admission", "running",
    } <= {span["operationName"] for span in c}  # fmt: skip
    assert {"user", "apiserver", "scheduler default-scheduler", "kubelet"} == {span["service"] for span in c}
    assert not [span["warnings"] for span in c if span["warnings"]], "as of a parent that is not there"
    assert {span["attributes"]["kemu.priority"] for span in c} == {1000}
    name = {span["spanID"]: span["operationName"] for span in c}
    parents = {
        (name[each["spanID"]], span["operationName"])
        for span in c for each in span["references"] if each["refType"] == "CHILD_OF"
    }  # fmt: skip
    assert {("attempt", "preemption"), ("attempt", "bind"), ("api bind", "binding"), ("pod", "attempt")} <= parents
    preemption_span = next(span for span in c if span["operationName"] == "preemption")
    assert "default/a" in preemption_span["attributes"]["kemu.reason"]
    victims = jaeger.search("scheduler default-scheduler", "preempted", kemu__run=run, kemu__preemptor="default/c")
    assert _links(preemption_span) == set(victims)
    for spans in victims.values():
        victim = next(span for span in spans if span["operationName"] == "preempted")
        assert _links(victim) == {preemption_span["traceID"]}


def test_searches_find_who_starves_and_who_lost_a_race(sent: dict[str, Sent]) -> None:
    run = sent["preemption-example-1"].name
    (starved,) = jaeger.search("user", "pod", kemu__run=run, kemu__outcome="never bound").values()
    assert {span["attributes"]["k8s.pod.name"] for span in starved} == {"d"}
    waited = jaeger.search("scheduler default-scheduler", "queue unschedulable", "25s", kemu__run=run)
    assert {span["attributes"]["k8s.pod.name"] for spans in waited.values() for span in spans} == {"c", "d"}
    race, many = sent["two-schedulers-one-node"].name, sent["two-replicas-same-pods"].name
    rejected = jaeger.search("kubelet", "kubelet admission", kemu__run=race, error__type="OutOfcpu")
    assert len(rejected) == 1
    lost = jaeger.search("apiserver", "bind refused", kemu__run=many, error__type="Conflict")
    assert len(lost) >= 5
    for spans in (*lost.values(), *rejected.values()):
        assert any("kemu.conflict.winner" in span["attributes"] for span in spans)


def test_a_search_finds_all_errors(sent: dict[str, Sent]) -> None:
    run = sent["preemption-example-1"].name
    lost = jaeger.search("user", "pod", kemu__run=run, kemu__failed="true")
    names = {span["attributes"]["k8s.pod.name"] for spans in lost.values() for span in spans}
    assert names == {"a", "b", "d"}, "two were preempted, and one was never bound"
    (starved,) = jaeger.search("user", "pod", kemu__run=run, error__type="Unschedulable").values()
    (root,) = (span for span in starved if span["operationName"] == "pod")
    assert "Insufficient cpu" in root["attributes"]["otel.status_description"]


def test_only_what_failed_is_an_error(sent: dict[str, Sent]) -> None:
    codes = {
        (span["attributes"].get("otel.status_code"), span["attributes"].get("error"))
        for one in sent.values()
        for spans in jaeger.search("user", kemu__run=one.name).values()
        for span in spans
    }
    assert codes <= {(None, None), ("ERROR", True)}
    assert (None, None) in codes
