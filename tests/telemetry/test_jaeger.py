"""Against the real Jaeger: what its query API answers after a run in which somebody was preempted."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kemu.cli.main import main
from kemu.telemetry import otlp, waterfall
from kemu.telemetry.spans import trace_id
from tests.telemetry import jaeger
from tests.telemetry.logs import preemption, spans_of, uid_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(jaeger.BUILD_TIMEOUT_S + 300)]


@pytest.fixture(scope="module", autouse=True)
def _jaeger() -> Iterator[None]:
    with jaeger.running():
        yield


def links(span: dict[str, Any]) -> set[str]:
    """Trace ids of its links: Jaeger has them as references beside that to the parent."""
    return {each["traceID"] for each in span["references"] if each["refType"] == "FOLLOWS_FROM"}


def test_a_log_made_by_hand(tmp_path: Path) -> None:
    log = preemption()
    report = otlp.export_run(log.write(tmp_path), jaeger.OTLP)
    made = spans_of(log.events)
    assert (report.sent, report.dropped) == (len(made), 0)
    expected = {f"{span.span_id:016x}": span.name for span in made if span.pod == "default/c"}
    found = jaeger.trace(uid_of("c"), len(expected))
    assert {span["spanID"]: span["operationName"] for span in found} == expected
    assert not [span["warnings"] for span in found if span["warnings"]]


def test_the_trace_of_a_preemptor(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    # A seed of its own: in a Jaeger that stays, other runs' pods have other UIDs.
    seed = str(secrets.randbelow(1 << 31))
    code = main(
        ["run", "seeds/preemption-example-1", "--seed", seed, "--json", "--out", str(folder), "--otlp", jaeger.OTLP]
    )
    assert code == 0
    pods = {name: waterfall.load(folder, name) for name in "abc"}
    found = jaeger.trace(pods["c"].uid, len(pods["c"].spans))
    names = [span["operationName"] for span in found]
    for name in (
        "pod default/c", "admission", "queue active", "queue unschedulable", "attempt", "preemption", "nomination",
        "bind", "kubelet admission", "running",
    ):  # fmt: skip
        assert name in names
    assert {"apiserver", "scheduler default-scheduler", "kubelet"} <= {span["service"] for span in found}
    preemption_span = next(span for span in found if span["operationName"] == "preemption")
    victims = {f"{trace_id(pods[name].uid):032x}" for name in "ab"}
    assert links(preemption_span) == victims
    tags = {tag["key"]: tag["value"] for tag in preemption_span["tags"]}
    assert "default/a" in tags["kemu.reason"]
    root = next(span for span in found if span["operationName"] == "pod default/c")
    parents = {each["spanID"] for span in found for each in span["references"] if each["refType"] == "CHILD_OF"}
    assert parents == {root["spanID"]}
    for name in "ab":
        spans = jaeger.trace(pods[name].uid, len(pods[name].spans))
        victim = next(span for span in spans if span["operationName"] == "preempted by default/c")
        assert links(victim) == {f"{trace_id(pods['c'].uid):032x}"}
