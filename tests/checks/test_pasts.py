"""What the store held before is kept packed: all that is judged is the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kemu.emulated.objects.wire.shared_objects import Past
from kemu.lab.checks.history import stores
from kemu.lab.checks.history.stores import Change, pack
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import judging, runner
from kemu.runtime.runlog.frames import FILE_NAME, Reader


def test_packed_values_are_what_they_were() -> None:
    generator = random.Random(1)
    values = [generator.randbytes(generator.randrange(2_000)) for _ in range(300)]
    values[7] = b""
    changes: list[Change] = []
    for number, value in enumerate(values):
        kept = None if number % 9 == 8 else value
        changes.append(Change(number, 0, f"key-{number}", kept, changes[-1] if changes else None))
    crcs = [change.crc for change in changes]
    for begin in range(0, 300, 100):
        pack(changes[begin : begin + 100])
    pack(changes)  # what is packed already stays so
    for number, change in random.Random(2).sample(list(enumerate(changes)), 300):
        assert change.is_deletion == (number % 9 == 8) == (change.value is None)
        assert change.value in (None, values[number])
        assert change.previous == (changes[number - 1].value if number else None)
        assert change.crc == crcs[number]
        assert change.is_deletion or isinstance(change._value, Past)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["chaos/restored-backup", "chaos/drain-under-budget", "races/priority-against-qos", "jobs/two-owners"]
)
def test_a_run_is_judged_alike(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = loader.load(catalog.find(name))
    runner.run_all(scenario, runner.Options(out=tmp_path, runtime="sim"))
    folder = tmp_path / "variant-0" if (tmp_path / "variant-0").exists() else tmp_path
    scenario = loader.load(folder / "scenario.yaml")
    found = []
    for latest, at_once in ((1 << 30, 1), (0, 1), (5, 7)):
        monkeypatch.setattr(stores, "LATEST_CHANGES", latest)
        monkeypatch.setattr(stores, "PACKED_CHANGES", at_once)
        judge = judging.Judge(scenario)
        with Reader(folder / FILE_NAME) as reader:
            for event in reader:
                judge.feed(*event)
        packed = [isinstance(change._value, Past) for change in judge.history.changes]
        assert any(packed) == (latest < 1 << 30)
        found.append(judge.conclude(judging.End("deadline", judge.history.now_ns)).data("sim", "digest"))
    assert found[0] == found[1] == found[2]
