"""Replay: run a recorded scenario again, and compare event by event.

In ``sim`` the same scenario and seed give the same bytes, so a difference means that the log was changed, that kemu
was, or that something reached around the Env. A run that was interrupted, or that broke, is compared as far as it went.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kemu
from kemu.errors import RunLogError, SimulationError
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.scenario.playing.checkpoints import log_differences
from kemu.lab.scenario.playing.checkpoints.log_differences import Difference
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.env import EPOCH_UNIX_S
from kemu.runtime.runlog import folders
from kemu.runtime.runlog.events import ActorFailed, RunEnded
from kemu.runtime.runlog.frames import FILE_NAME, Reader, unpack_event


@dataclass(frozen=True)
class Replay:
    """One run folder, run again."""

    folder: Path
    digest: str
    """Digest of the new run; empty where the record is not of a whole run."""
    events: int
    """How many are equal."""
    difference: Difference | None
    interrupted: bool = False
    """The record ends before the run does; ``difference`` is about what there is of it."""
    broke: str = ""
    """How the run ended that broke: the first line of the failure."""
    version: str = ""
    """Of the kemu that recorded it, where that is another one."""


@dataclass(frozen=True)
class _Record:
    header: dict[str, object]
    events: int
    """Those that can be read, up to the first damaged frame."""
    interrupted: bool
    """It ends before the run does, perhaps within a frame, as when its process was killed."""
    broke: str
    version: str


Setting = Callable[[Path, Scenario], tuple[Scenario, Mapping[str, Any]]]
"""From a run folder and the scenario in it: what was played in truth, and more of :class:`runner.Options`."""


def as_it_stands(folder: Path, scenario: Scenario) -> tuple[Scenario, Mapping[str, Any]]:
    """The setting of ``kemu run``."""
    return scenario, {}


def replay(folder: Path, data_dir: Path | None = None, setting: Setting = as_it_stands) -> list[Replay]:
    """Replay a run folder, or every variant in one.

    Raises RunLogError where the folder is not one of a run, or its runtime was not ``sim``.
    """
    return [_replay(each, data_dir, setting) for each in folders.runs_in(folder)]


def _replay(folder: Path, data_dir: Path | None, setting: Setting) -> Replay:
    scenario_file = folder / folders.SCENARIO_FILE
    if not scenario_file.is_file():
        raise RunLogError(folders.not_a_run(folder, folders.SCENARIO_FILE))
    record = _record(folder / FILE_NAME)
    runtime = record.header.get("runtime")
    if runtime != "sim":
        raise RunLogError(f"{folder}: a run on {runtime!r} happened in real time; only sim runs replay")
    scenario, more = setting(folder, loader.load(scenario_file, data_dir))
    with tempfile.TemporaryDirectory(prefix="kemu-replay-") as again:
        epoch_unix_s = record.header.get("epoch_unix_s", EPOCH_UNIX_S)
        assert isinstance(epoch_unix_s, int)
        options = runner.Options(
            out=Path(again), runtime="sim", most_events=record.events, epoch_unix_s=epoch_unix_s, **more
        )
        digest = ""
        try:
            digest = runner.run(scenario, options).verdict["digest"]
        except SimulationError:
            if not (record.broke or record.interrupted):
                raise
        difference, events = log_differences.first(folder / FILE_NAME, Path(again) / FILE_NAME)
    if record.interrupted and difference is not None and difference.index == record.events:
        difference = None  # the record has no more
    digest = "" if record.interrupted else digest
    return Replay(folder, digest, events, difference, record.interrupted, record.broke, record.version)


def _record(file: Path) -> _Record:
    events, ended, broke, damaged = 0, False, "", False
    with Reader(file) as reader:
        for payload in log_differences.payloads(reader):
            if isinstance(payload, str):
                damaged = True
                break
            events += 1
            ended = ended or _is(payload, RunEnded.KIND)
            if _is(payload, ActorFailed.KIND) and isinstance(failed := unpack_event(payload).data, ActorFailed):
                broke = failed.error.partition("\n")[0]
        interrupted = reader.cut_bytes > 0 or not (ended or broke or damaged)
        return _Record(reader.header, events, interrupted, broke, _other_version(reader))


def _other_version(reader: Reader) -> str:
    version = str(reader.header.get("kemu", "of an unknown version"))
    if reader.is_plain:
        return f"{version}, before its release"
    return "" if version == kemu.__version__ else version


def _is(payload: bytes, kind: str) -> bool:
    if kind.encode() not in payload:
        return False
    try:
        return unpack_event(payload).kind == kind
    except Exception:  # whatever damaged bytes make of msgpack: the comparison tells
        return False
