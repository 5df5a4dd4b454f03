"""Every shipped scenario does what its document says, and can be replayed.

Here each runs with the seed of its document. CI judges another one, and repeats it (``scripts/check-determinism``).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.errors import LogCutWarning
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.scenario.playing.replaying import replays
from kemu.runtime.runlog.frames import FILE_NAME, Reader, Writer
from tests import samples, traces

SCENARIOS = {name: path for name, path in catalog.shipped().items() if not name.startswith(("traces/", "scale/"))}

pytestmark = pytest.mark.slow

LARGE = (
    "chaos/thousand-nodes",
    "groups/large-gang",
    "seeds/starvation",
    "seeds/who-preempts",
    "starvation/wide-pods-under-load",
)
"""Five seconds of computing and more: by day for CI alone, with another seed."""


def run(name: str, out: Path, seed: int | None = None) -> dict:
    overrides = {} if seed is None else {"seed": seed}
    scenario = loader.load(SCENARIOS[name], overrides=overrides)
    return runner.run_all(scenario, runner.Options(out=out, runtime="sim"))[0]


def failures(verdict: dict) -> list[str]:
    judged = [*verdict["expectations"], *verdict["checks"]]
    return [f"{found.get('text', found['id'])}: {found['detail']}" for found in judged if found["holds"] is not True]


@pytest.mark.parametrize("name", [name for name in SCENARIOS if samples.NIGHT or name not in LARGE])
def test_holds_in_virtual_time(name: str, tmp_path: Path) -> None:
    verdict = run(name, tmp_path)
    assert verdict["verdict"] == "holds", failures(verdict)


def test_other_seeds_give_other_runs(tmp_path: Path) -> None:
    name = "races/two-schedulers-one-node"
    digests = {run(name, tmp_path / str(seed), seed)["digest"] for seed in (1, 2, 3)}
    assert len(digests) == 3


class TestReplay:
    def test_agrees(self, tmp_path: Path) -> None:
        verdict = run("races/two-schedulers-one-node", tmp_path)
        (replay,) = replays.replay(tmp_path)
        assert replay.difference is None
        assert replay.digest == verdict["digest"]

    def test_agrees_for_every_variant_of_a_matrix(self, tmp_path: Path) -> None:
        run("seeds/preemption-example-4", tmp_path)
        found = replays.replay(tmp_path)
        assert len(found) == 2
        assert all(replay.difference is None for replay in found)

    def test_names_the_first_event_that_differs(self, tmp_path: Path) -> None:
        run("races/two-schedulers-one-node", tmp_path)
        log = tmp_path / FILE_NAME
        intact = log.read_bytes()
        for place in (0.4, 0.6, 0.9):
            damaged = bytearray(intact)
            damaged[int(len(damaged) * place)] ^= 0x01
            log.write_bytes(damaged)
            (replay,) = replays.replay(tmp_path)
            assert replay.difference is not None
            found = replay.difference
            assert found.recorded != found.replayed or any(one.recorded != one.replayed for one in found.fields)
            assert f"event {replay.difference.index} differs" in str(replay.difference)

    def test_does_not_outlive_a_record_that_was_interrupted(self, tmp_path: Path) -> None:
        run("chaos/scheduler-crash", tmp_path / "whole")
        with Reader(tmp_path / "whole" / FILE_NAME) as reader:
            events = list(reader)
        writer = Writer(tmp_path / "whole" / FILE_NAME, {"runtime": "sim"})
        for event in events[:100]:
            writer.append(*event)
        writer.close()
        (replay,) = replays.replay(tmp_path / "whole")
        assert (replay.difference, replay.interrupted, replay.events) == (None, True, 100)

    def test_notices_a_log_that_was_cut(self, tmp_path: Path) -> None:
        run("races/two-schedulers-one-node", tmp_path)
        log = tmp_path / FILE_NAME
        log.write_bytes(log.read_bytes()[:-5])
        with pytest.warns(LogCutWarning, match="its last [0-9]+ bytes are no whole event"):
            (replay,) = replays.replay(tmp_path)
        assert (replay.difference, replay.interrupted) == (None, True)


def test_a_sample_of_the_production_trace_runs_to_its_end(tmp_path: Path) -> None:
    """CI judges the whole one. Of a sample not all that is expected holds."""
    scenario = loader.load(catalog.find("traces/openb"), traces.sample())
    verdict, _ = runner.run_all(scenario, runner.Options(out=tmp_path / "run", runtime="sim"))
    broken = [check["id"] for check in verdict["checks"] if check["asked"] and check["holds"] is False]
    assert not broken, failures(verdict)
    assert verdict["counts"]["pods_created"] >= traces.SAMPLE_PODS
    assert verdict["counts"]["pods_bound"] >= traces.SAMPLE_PODS // 2
