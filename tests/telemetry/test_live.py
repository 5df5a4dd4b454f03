"""Traces that cells of the Ray runtime send while a scenario runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kemu.errors import KemuError
from kemu.runlog.frames import FILE_NAME, Reader
from kemu.scenario import catalog
from kemu.scenario.loading import loader
from kemu.scenario.playing import runner
from kemu.telemetry import waterfall
from tests.telemetry.collectors import Collector, collector

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture
def here() -> Iterator[Collector]:
    with collector() as found:
        yield found


def run(folder: Path, endpoint: str) -> runner.RunResult:
    scenario = loader.load(catalog.find("seeds/preemption-example-1"))
    options = runner.Options(out=folder, runtime="ray", speed=20, otlp=endpoint)
    _, (result,) = runner.run_all(scenario, options)
    return result


def test_what_cells_send_is_what_the_run_log_tells(tmp_path: Path, here: Collector) -> None:
    result = run(tmp_path, here.endpoint)
    with Reader(tmp_path / FILE_NAME) as reader:
        epoch_ns = reader.header["epoch_unix_s"] * 10**9
    assert result.traces == f"{here.received} spans sent, 0 dropped"
    assert {"user", "apiserver", "scheduler default-scheduler", "kubelet"} == set(here.services)
    for name in "abcd":
        trace = waterfall.load(tmp_path, name)
        sent = {key[1]: span for key, span in here.spans.items() if key[0] == f"{trace.spans[0].trace_id:032x}"}
        made = {f"{span.span_id:016x}": span for span in trace.spans}
        # Whether a pod that nobody admitted ran before is known only to who sees its creation too.
        inferred = {key for key, span in made.items() if span.name == "running"} if name in "ab" else set()
        assert set(made) - inferred == set(sent) - inferred
        for key, span in sent.items():
            assert span.name == made[key].name
            assert span.start_time_unix_nano == made[key].start_ns + epoch_ns


def test_no_run_begins_without_its_collector(tmp_path: Path) -> None:
    with pytest.raises(KemuError, match="no collector answers at"):
        run(tmp_path, "127.0.0.1:9")
