"""The log of a run whose driver was killed is made from what it and its cells have kept; what is missing is told.

A run in virtual time stands in for the cells: its events are put into segments by actor.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import msgpack
import pytest

from kemu.doors.cli import exits
from kemu.doors.cli.main import main
from kemu.errors import InfrastructureError, KemuError
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.scenario.playing.replaying import recoveries
from kemu.runtime.host import segments
from kemu.runtime.ray.driver import clusters
from kemu.runtime.ray.driver.logs import ledgers
from kemu.runtime.ray.driver.logs.recoveries import Recovery
from kemu.runtime.runlog import folders
from kemu.runtime.runlog.events import own
from kemu.runtime.runlog.frames import FILE_NAME, Reader, Writer
from tests.ray.test_log_order import CELLS, cell_of

STORE = CELLS.index("store")


class Killed:
    """The folder of a run whose driver was killed."""

    def __init__(self, folder: Path, original: Path) -> None:
        self.folder = folder
        with Reader(original / FILE_NAME) as reader:
            self.events = list(reader)
            Writer(folder / FILE_NAME, {**reader.header, "runtime": "ray", "speed": 1.0}).close()
        (folder / folders.SCENARIO_FILE).write_text((original / folders.SCENARIO_FILE).read_text())
        directory = folder / folders.CELLS
        self.paths = [directory / ledgers.FOLDER / f"{cell}-77-1.segment" for cell in CELLS[1:]]
        written = [segments.Segment(path) for path in self.paths]
        received: dict[tuple[int, int], int] = {}
        self.ledger = ledgers.Ledger(directory, lambda: received)
        for number, path in enumerate(self.paths):
            # As the driver knew them, before the folder was moved.
            self.ledger.open((number, 1), f"cell/{CELLS[number + 1]}", f"/before/{path.name}", "10.0.0.2")
        for time_ns, actor, kind, data in self.events:
            cell = cell_of(actor)
            if cell:
                written[cell - 1].append(time_ns, actor, kind, data)
                received[cell - 1, 1] = written[cell - 1].events
            else:
                self.ledger.keep(time_ns, actor, kind, data)
        for segment in written[:-1]:
            segment.close()
        # The last process of a cell was killed, too: zeros follow.
        self.counts = [segment.events for segment in written]
        self.ledger._noted_at = -ledgers.NOTE_EVERY_S
        self.ledger.look()

    def die(self) -> None:
        self.ledger.close()

    @property
    def driver(self) -> Path:
        return next((self.folder / folders.CELLS / ledgers.FOLDER).glob("driver-*"))

    def cut(self, cell: int, last_bytes: bytes = b"") -> int:
        """Cut the segment of a cell before its last event, and put something else there. Returns what is left."""
        payloads = list(segments.read_segment(self.paths[cell - 1]))
        self.paths[cell - 1].write_bytes(self.paths[cell - 1].read_bytes()[: -8 - len(payloads[-1])] + last_bytes)
        return len(payloads) - 1


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original")
    scenario = loader.load(catalog.shipped()["seeds/preemption-example-1"])
    runner.run(loader.variants(scenario)[-1][1], runner.Options(out=folder, runtime="sim"))
    return folder


@pytest.fixture
async def killed(original: Path, tmp_path: Path) -> Killed:
    return Killed(tmp_path, original)


async def test_a_log_is_made_whole_and_judged(killed: Killed, original: Path) -> None:
    killed.die()
    found = recoveries.recover(killed.folder)
    with Reader(killed.folder / FILE_NAME) as reader:
        events = list(reader)
        assert reader.header["runtime"] == "ray"
    assert sorted(events, key=repr) == sorted(killed.events, key=repr)
    assert "incomplete" not in found.verdict
    before = json.loads((original / folders.VERDICT_FILE).read_text())
    for key in ("verdict", "expectations", "counts", "virtual_s", "ended"):
        assert found.verdict[key] == before[key]
    assert json.loads((killed.folder / folders.VERDICT_FILE).read_text()) == found.verdict
    with pytest.raises(KemuError, match=r"came to its end, and has a verdict\.json: nothing to recover"):
        recoveries.recover(killed.folder)


def lose(killed: Killed) -> str:
    killed.paths[STORE - 1].unlink()
    return (
        "cell/store: the log is missing from event 0 of its process on: there is no store-77-1.segment in "
        f"{killed.paths[0].parent}; copy it there if another machine has it, or name the Ray cluster of the run (--ray)"
    )


def cut_short(killed: Killed) -> str:
    left = killed.cut(STORE)
    return (
        f"cell/store: the log is missing from event {left} of its process on: store-77-1.segment ends early: "
        f"{left + 1} events of it had come to the driver"
    )


def tear(killed: Killed) -> str:
    left = killed.cut(STORE, b"\x10\x00\x00\x00\x00\x00\x00\x00torn")
    return (
        f"cell/store: the log is missing from event {left} of its process on: store-77-1.segment cannot be read to "
        f"its end: event {left} is not what was written"
    )


def lose_the_drivers(killed: Killed) -> str:
    killed.driver.unlink()
    return (
        "driver: the log is missing from event 0 of its process on: there is no driver-….segment in "
        f"{killed.paths[0].parent}; copy it there if another machine has it"
    )


@pytest.mark.parametrize("lost", [("store",), ("store", "kubelet")])
async def test_what_the_driver_had_written_of_lost_processes_is_kept(killed: Killed, lost: tuple[str, ...]) -> None:
    """Their machine is gone, with their segments; the driver was killed later."""
    written, left = killed.events[: len(killed.events) * 2 // 3], killed.events[len(killed.events) * 2 // 3 :]
    with Reader(killed.folder / FILE_NAME) as reader:
        writer = Writer(killed.folder / FILE_NAME, reader.header)
    for event in written:
        # As of one that had to wait for its cause.
        writer.append(event.time_ns + (cell_of(event.actor) == CELLS.index("kubelet")), *event[1:])
    writer.close()
    killed.die()
    for cell in lost:
        killed.paths[CELLS.index(cell) - 1].unlink()
    verdict = recoveries.recover(killed.folder).verdict
    with Reader(killed.folder / FILE_NAME) as reader:
        found = [event for event in reader if event.kind != "log.missing"]
    is_lost = [bool(cell_of(event.actor)) and CELLS[cell_of(event.actor)] in lost for event in left]
    expected = [*written, *(event for event, gone in zip(left, is_lost, strict=True) if not gone)]
    assert any(is_lost)
    assert sorted((event[1:] for event in found), key=repr) == sorted((event[1:] for event in expected), key=repr)
    for actor in {event.actor for event in expected}:
        assert [event[1:] for event in found if event.actor == actor] == [
            event[1:] for event in expected if event.actor == actor
        ]
    known = sum(bool(cell_of(event.actor)) and CELLS[cell_of(event.actor)] in lost for event in written)
    assert len(verdict["incomplete"]) == len(lost)
    for missing in verdict["incomplete"]:
        assert missing.endswith(f"; {known} events were in run.kemu, as far as the driver had written it")
        assert f"missing from event {known if len(lost) == 1 else 0} of its process on" in missing
    # Once more, now that the log is what the last recovery made.
    recoveries.recover(killed.folder)
    with Reader(killed.folder / FILE_NAME) as reader:
        assert [event for event in reader if event.kind != "log.missing"] == found


async def test_events_of_a_lost_process_are_not_taken_for_those_of_the_next_one(tmp_path: Path) -> None:
    """Its machine is gone; the next process of the cell, elsewhere, logs the same."""
    ledger = ledgers.Ledger(tmp_path, dict)
    paths = [tmp_path / ledgers.FOLDER / f"one-{pid}-1.segment" for pid in (7, 8)]
    for number, path in enumerate(paths):
        ledger.open((0, number + 1), "cell/one", str(path), "10.0.0.2")
    ledger.close()
    segment = segments.Segment(paths[1])
    for time_ns in (100, 200, 300):
        segment.append(time_ns, "a", "own.tick", {})
    segment.close()
    writer = Writer(tmp_path / FILE_NAME, {})
    for time_ns in (10, 20, 100, 200):
        writer.append(time_ns, "a", "own.tick", own("own.tick"))
    writer.close()
    found: list[tuple[int, str]] = []
    Recovery(tmp_path).hand_on(lambda time_ns, actor, *_: found.append((time_ns, actor)), tmp_path / FILE_NAME)
    assert found == [*((time_ns, "a") for time_ns in (10, 20, 100, 200, 300)), (300, "cell/one")]


@pytest.mark.parametrize("harm", [lose, cut_short, tear, lose_the_drivers])
async def test_what_is_missing_is_told_and_the_verdict_unknown(
    killed: Killed, harm: Callable[[Killed], str], capsys: pytest.CaptureFixture[str]
) -> None:
    killed.die()
    missing = harm(killed)
    assert main(["recover", str(killed.folder), "--json"]) == exits.UNKNOWN
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["verdict"] == "unknown"
    assert verdict["incomplete"] == [missing]


class Joined:
    """A Ray cluster whose nodes have the files of a folder."""

    asked: ClassVar[list[tuple[str, str]]] = []
    kept: ClassVar[Path]

    def __init__(self, address: str) -> None:
        self.address = address

    def __enter__(self) -> Joined:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def fetch(self, address: str, path: str, to: Path) -> None:
        if to.exists():
            return
        self.asked.append((address, path))
        file = self.kept / to.name
        if not file.exists():
            raise InfrastructureError(f"the Ray cluster has no node at {address}")
        shutil.copy(file, to)


async def test_segments_of_other_machines_are_fetched(
    killed: Killed, original: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a recovery that had to do without them; what is here is not asked for."""
    killed.die()
    Joined.kept, Joined.asked = tmp_path_factory.mktemp("kept"), []
    monkeypatch.setattr(clusters, "RayCluster", Joined)
    lost = killed.paths[STORE - 1]
    lost.rename(Joined.kept / lost.name)
    assert recoveries.recover(killed.folder).verdict["verdict"] == "unknown"
    found = recoveries.recover(killed.folder, "10.0.0.1:6379")
    assert Joined.asked == [("10.0.0.2", f"/before/{lost.name}")]
    assert "incomplete" not in found.verdict
    assert found.judged.history.kinds.total() == len(killed.events)
    with pytest.raises(KemuError, match="nothing to recover"):
        recoveries.recover(killed.folder, "10.0.0.1:6379")


async def test_a_machine_that_is_gone_is_told(
    killed: Killed, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed.die()
    Joined.kept = tmp_path_factory.mktemp("kept")
    monkeypatch.setattr(clusters, "RayCluster", Joined)
    killed.paths[STORE - 1].unlink()
    (missing,) = recoveries.recover(killed.folder, "10.0.0.1:6379").verdict["incomplete"]
    assert missing.endswith("; the Ray cluster has no node at 10.0.0.2")


async def test_a_segment_of_which_the_driver_had_not_heard_yet_is_read(killed: Killed) -> None:
    killed.die()
    late = segments.Segment(killed.paths[0].parent / "late-one-99-1.segment")
    late.append(7, "kubelet/late", "actor.started", {"incarnation": 1})
    late.close()
    assert recoveries.recover(killed.folder).judged.history.kinds["actor.started"] == 1 + sum(
        event.kind == "actor.started" for event in killed.events
    )


async def test_a_run_that_goes_on_is_left_alone(killed: Killed) -> None:
    with pytest.raises(KemuError, match="the run is still going on"):
        recoveries.recover(killed.folder)
    killed.die()


def test_a_log_without_segments_is_judged_as_it_was_left(
    original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C, or a run in virtual time."""
    (tmp_path / folders.SCENARIO_FILE).write_text((original / folders.SCENARIO_FILE).read_text())
    with Reader(original / FILE_NAME) as reader:
        writer = Writer(tmp_path / FILE_NAME, reader.header)
        for event in list(reader)[:100]:
            writer.append(*event)
        writer.close()
    assert main(["recover", str(tmp_path)]) == exits.UNKNOWN, "what has not come true may have been going to"
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"{tmp_path}: the log, as it was left, goes to ")
    assert said[0].endswith(" and has 100 events")


def test_times_are_read_without_the_rest() -> None:
    from kemu.runtime.runlog import frames

    for time_ns in (0, 1, 127, 128, 255, 256, 65_535, 65_536, 1 << 32, 1 << 40):
        assert frames.time_of(msgpack.packb((time_ns, "actor", "kind", {}))) == time_ns
