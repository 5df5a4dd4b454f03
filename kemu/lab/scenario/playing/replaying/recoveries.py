"""A run whose process was killed, or that was interrupted: its log as far as it went, made whole and judged.

On Ray the cells have kept their events, and the driver its own (:mod:`kemu.runtime.ray.driver.logs.recoveries`); the
log is made from them. What is missing is told, and the verdict is ``unknown`` then.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.errors import KemuError
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import judging, runner
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.runlog import folders
from kemu.runtime.runlog.events import RunEnded
from kemu.runtime.runlog.frames import CUT, FILE_NAME, Digester, Reader, Writer


@dataclass(frozen=True)
class Recovered:
    scenario: Scenario
    verdict: dict[str, Any]
    judged: judging.Judged
    from_segments: bool
    """The log was made anew."""


def recover(folder: Path, ray_address: str | None = None) -> Recovered:
    """Leaves the log, its index and verdict.json in the folder. ``ray_address``: of the Ray cluster on which it ran;
    what its other machines have kept is fetched from them.

    Raises KemuError, also where the run came to its end, or where all of its log was found before.
    """
    if _is_whole(folder):
        raise KemuError(f"{folder}: the run came to its end, and has a {folders.VERDICT_FILE}: nothing to recover")
    file = folder / folders.SCENARIO_FILE
    for name in (folders.SCENARIO_FILE, FILE_NAME):
        if not (folder / name).is_file():
            raise KemuError(folders.not_a_run(folder, name))
    scenario = loader.load(file)
    with Reader(folder / FILE_NAME) as reader:
        header = reader.header
    has_segments = any((folder / folders.CELLS / folders.SEGMENTS).glob("*.segment"))
    if ray_address is not None and not has_segments:
        raise KemuError(f"{folder}: the run was not on Ray, or left nothing there: recover it without --ray")
    if has_segments:
        _make_anew(folder, header, ray_address)
    end, digest = _end_of(folder / FILE_NAME)
    judged = runner.judge(scenario, folder, end)
    verdict = {**judged.data(header.get("runtime", "sim"), digest), "recovered": True, "run": str(folder)}
    folders.write_verdict(folder, verdict)
    if not judged.history.gaps:
        folders.drop_segments(folder)
    return Recovered(scenario, verdict, judged, has_segments)


def _is_whole(folder: Path) -> bool:
    """Whether it has a verdict that no segment could change."""
    if not (folder / folders.VERDICT_FILE).exists():
        return False
    verdict = folders.verdict_of(folder)
    return not (verdict.get("recovered") and verdict.get("incomplete"))


def _make_anew(folder: Path, header: dict[str, Any], ray_address: str | None) -> None:
    # Imported on use: the sim starts without anything of Ray's.
    from kemu.runtime.ray.driver.clusters import RayCluster
    from kemu.runtime.ray.driver.logs.recoveries import Recovery

    if ray_address is None:
        recovery = Recovery(folder / folders.CELLS)
    else:
        with RayCluster(ray_address) as cluster:
            recovery = Recovery(folder / folders.CELLS, cluster.fetch)
    made = folder / f"{FILE_NAME}.recovered"
    writer = Writer(made, header)
    try:
        recovery.hand_on(writer.append, folder / FILE_NAME)
    finally:
        writer.close()
    made.replace(folder / FILE_NAME)


def _end_of(file: Path) -> tuple[judging.End, str]:
    """How the run ended, and the digest of its log."""
    end = judging.End("interrupted", 0)
    digester = Digester()
    with Reader(file) as reader:
        for event in reader:
            if event.kind == CUT:
                continue
            digester.append(*event)
            end.now_ns = max(end.now_ns, event.time_ns)
            if isinstance(event.data, RunEnded):
                end.reason = event.data.reason
    return end, digester.digest()
