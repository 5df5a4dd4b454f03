"""Traces that are sent while a scenario runs on Ray."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kemu.errors import KemuError
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.telemetry import otlp
from tests.telemetry.collectors import Collector, collector

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("local_ray")]


@pytest.fixture
def here() -> Iterator[Collector]:
    with collector() as found:
        yield found


def run(folder: Path, endpoint: str) -> runner.RunResult:
    scenario = loader.load(catalog.find("seeds/preemption-example-1"))
    options = runner.Options(out=folder, runtime="ray", speed=20, otlp=endpoint)
    _, (result,) = runner.run_all(scenario, options)
    return result


def test_what_is_sent_live_is_what_the_run_log_tells(tmp_path: Path, here: Collector) -> None:
    result = run(tmp_path, here.endpoint)
    live = here.spans
    assert result.traces.startswith(f"{len(live)} spans sent, 0 dropped; kemu.run=")
    assert {"user", "apiserver", "scheduler default-scheduler", "kubelet"} == set(here.services)
    here.spans = {}
    otlp.export_run(tmp_path, here.endpoint)
    assert live == here.spans
    roots = [span for span in live.values() if not span.parent_span_id]
    assert len(roots) == 4, "each pod has one"
    for root in roots:
        known = {each.key: each.value.string_value for each in root.attributes}
        assert {"k8s.pod.name", "k8s.pod.uid", "k8s.namespace.name", "kemu.priority"} <= set(known)
        assert ("k8s.node.name" in known) == (known["k8s.pod.name"] != "d"), "all but d get a node"
    parents = {(span.trace_id, span.span_id) for span in live.values()}
    assert all((span.trace_id, span.parent_span_id) in parents for span in live.values() if span.parent_span_id)


def test_no_run_begins_without_its_collector(tmp_path: Path) -> None:
    with pytest.raises(KemuError, match="no collector answers at"):
        run(tmp_path, "127.0.0.1:9")
