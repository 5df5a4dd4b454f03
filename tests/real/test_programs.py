"""Programs as actors of a run: they start, die, come back, stand still, are cut off, and leave nothing behind."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kemu.errors import ActorFailed
from kemu.runtime.env import SECOND_NS, ActorSpec
from kemu.runtime.host import wall_clocks
from kemu.runtime.real import merging
from kemu.runtime.real.programs import Process, Program
from kemu.runtime.real.runtime import Hear, Link, RealRuntime
from kemu.runtime.runlog.events import Event, own

PYTHON = Path(sys.executable)
TICKS = """
import itertools, sys, time
for number in itertools.count():
    print("tick", number, file=sys.stderr, flush=True)
    time.sleep(0.02)
"""
DIES = "import sys; print('no disk', file=sys.stderr); sys.exit(7)"

ENDED = ("one process.used", "one actor.stopped")


class Programs:
    """A program for each actor, by its name; its lines are events."""

    def __init__(self, folder: Path, scripts: Mapping[str, str]) -> None:
        self._folder = folder
        self._scripts = scripts
        self.hear: Hear
        self.link: Link
        self.is_closed = False

    def open(self, hear: Hear, link: Link) -> None:
        self.hear, self.link = hear, link

    async def program(self, spec: ActorSpec) -> Program | None:
        if spec.name not in self._scripts:
            return None

        def heard(line: str) -> None:
            self.hear(wall_clocks.wall_ns(), spec.name, own("program.line", {"line": line.strip()}))

        log = self._folder / f"{spec.name}.log"
        return Program(PYTHON, ["-c", self._scripts[spec.name]], log, hear=heard, stop_s=1.0)

    def stand_in(self, spec: ActorSpec) -> ActorSpec | None:
        return None

    async def started(self, spec: ActorSpec) -> None:
        pass

    async def stopping(self, spec: ActorSpec) -> None:
        pass

    async def close(self) -> None:
        self.is_closed = True


class Run:
    """A run of programs, with what was logged."""

    def __init__(self, folder: Path, **scripts: str) -> None:
        self.events: list[tuple[int, str, str, Event]] = []
        self.programs = Programs(folder, scripts)
        self.dates: list[int] = []
        self.runtime = RealRuntime(
            1, self._log, directory=folder / "cells", programs=self.programs, on_date=self.dates.append
        )
        self.names = list(scripts)

    def _log(self, time_ns: int, actor: str, kind: str, data: Any) -> None:
        self.events.append((time_ns, actor, kind, data))

    def play(self, *steps: Any) -> list[str]:
        """Begin, carry out the steps, end. Returns the kinds of events but for lines."""

        async def main() -> None:
            await self.runtime.launch([ActorSpec(name, "", {}) for name in self.names])
            await self.runtime.begin()
            for step in steps:
                await step(self.runtime)
            await self.runtime.shutdown()

        self.runtime.run(main())
        assert [event[0] for event in self.events] == sorted(event[0] for event in self.events)
        return [f"{actor} {kind}" for _, actor, kind, _ in self.events if kind != "program.line"]

    def lines(self) -> list[tuple[int, str]]:
        return [(at_ns, data["line"]) for at_ns, _, kind, data in self.events if kind == "program.line"]


async def wait(runtime: RealRuntime, seconds: float = 0.4) -> None:
    await asyncio.sleep(seconds)


def test_a_program_is_an_actor(tmp_path: Path) -> None:
    run = Run(tmp_path, one=TICKS)
    kinds = run.play(wait)
    assert kinds == ["one actor.started", *ENDED]
    assert len(run.lines()) > 10
    assert run.programs.is_closed
    assert abs(run.dates[0] - time.time()) < 10


def test_set_up_is_at_0_and_later_lines_have_their_times(tmp_path: Path) -> None:
    run = Run(tmp_path, one=TICKS)
    run.play(wait)
    times = [at_ns for at_ns, _ in run.lines()]
    assert times[0] == 0
    assert 0.2 * SECOND_NS < times[-1] < 5 * SECOND_NS


def test_a_crash_is_sigkill_and_the_program_comes_back(tmp_path: Path) -> None:
    run = Run(tmp_path, one=TICKS)

    async def crash(runtime: RealRuntime) -> None:
        await runtime.crash("one")
        with pytest.raises(KeyError):
            await runtime.crash("two")

    async def restart(runtime: RealRuntime) -> None:
        await runtime.restart("one")
        with pytest.raises(ValueError, match="one is running"):
            await runtime.restart("one")

    kinds = run.play(wait, crash, wait, restart, wait)
    assert kinds == [
        "one actor.started",
        "one actor.crashed",
        "one actor.started",
        "one process.used",
        "one actor.stopped",
    ]
    assert [line for _, line in run.lines()].count("tick 0") == 2


def test_one_that_ends_by_itself_is_started_again(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    script = f"import os, sys, time\nif os.path.exists({str(flag)!r}):\n time.sleep(60)\ntime.sleep(1.5)\n"
    script += f"open({str(flag)!r}, 'w').close(); sys.exit(3)"
    run = Run(tmp_path, one=script)
    kinds = run.play(lambda runtime: wait(runtime, 4.5))
    assert kinds == [
        "one actor.started", "one actor.exited", "one actor.crashed", "one actor.started", *ENDED,
    ]  # fmt: skip
    exited = next(data for _, _, kind, data in run.events if kind == "actor.exited")
    assert exited["why"] == "its process ended with 3"


def test_one_that_cannot_start_ends_the_run_with_its_last_words(tmp_path: Path) -> None:
    run = Run(tmp_path, one=DIES)
    with pytest.raises(ActorFailed, match=r"one: .* ended with 7: no disk"):
        run.play(lambda runtime: wait(runtime, 5))


def test_a_paused_program_says_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, one=TICKS)

    async def pause(runtime: RealRuntime) -> None:
        await runtime.inject("f", "pause", {"actor": ["one"]})
        await asyncio.sleep(1.5)
        assert await runtime.heal("f") == 1

    run.play(wait, pause, wait)
    times = [at_ns for at_ns, _ in run.lines()]
    assert max(after - before for before, after in itertools.pairwise(times)) > SECOND_NS


def test_sigterm_is_heard_and_the_supervisor_starts_it_again(tmp_path: Path) -> None:
    script = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
    script += "print('up', file=sys.stderr, flush=True)\ntime.sleep(60)"
    run = Run(tmp_path, one=script)

    async def terminate(runtime: RealRuntime) -> None:
        await runtime.inject("f", "terminate", {"actor": ["one"]})

    run.play(wait, terminate, lambda runtime: wait(runtime, 2.5))
    assert [line for _, line in run.lines()] == ["up", "up"]


def test_a_partition_holds_bytes_between_two_programs(tmp_path: Path) -> None:
    """What is cut is the link through the proxy; when it heals, what was said arrives."""
    server = tmp_path / "server"
    listens = f"""
import asyncio, sys
async def serve(reader, writer):
    while line := await reader.readline():
        print("got", line.decode().strip(), file=sys.stderr, flush=True)
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    open({str(server)!r}, "w").write(str(server.sockets[0].getsockname()[1]))
    await server.serve_forever()
asyncio.run(main())
"""
    run = Run(tmp_path, one=listens, two="import time; time.sleep(60)")

    async def talk(runtime: RealRuntime) -> None:
        target = f"127.0.0.1:{server.read_text()}"
        host, _, port = (await run.programs.link("two", "one", target)).rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"before\n")
        await asyncio.sleep(0.3)
        await runtime.partition("f", ["two"], ["one"])
        writer.write(b"during\n")
        await asyncio.sleep(0.5)
        assert "got during" not in [line for _, line in run.lines()]
        await runtime.heal("f")
        await asyncio.sleep(0.5)
        writer.close()

    run.play(wait, talk)
    times = {line: at_ns for at_ns, line in run.lines()}
    assert times["got during"] - times["got before"] > 0.5 * SECOND_NS


def test_no_process_outlives_kemu(tmp_path: Path) -> None:
    """kill -9 of the run ends its programs."""
    script = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pathlib import Path
from tests.real.test_programs import Run, TICKS, wait
Run(Path({str(tmp_path)!r}), one="import os; open('pid', 'w').write(str(os.getpid()));" + TICKS).play(
    lambda runtime: wait(runtime, 60))
"""
    process = subprocess.Popen([PYTHON, "-c", script], cwd=Path(__file__).parents[2])
    try:
        file = tmp_path / "pid"
        deadline = time.monotonic() + 30
        while not (file.exists() and file.read_text()):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    pid = int(file.read_text())
    deadline = time.monotonic() + 10
    while _lives(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_what_is_heard_late_is_put_in_its_place() -> None:
    passed: list[tuple[int, str]] = []
    merger = merging.Merger(lambda time_ns, actor, kind, data: passed.append((time_ns, kind)), hold_ns=10)
    for time_ns, kind in ((5, "b"), (3, "a"), (5, "c"), (20, "e"), (12, "d")):
        merger.add(time_ns, "x", kind, {})
    merger.flush(15)
    assert passed == [(3, "a"), (5, "b"), (5, "c")]
    merger.add(1, "x", "late", {})
    merger.close()
    assert passed[3:] == [(5, "late"), (12, "d"), (20, "e"), (20, "log.late")]


def test_signals_reach_a_process_that_is_meant_to_live(tmp_path: Path) -> None:
    """The run's own SIGTERM is no exit; one from outside is."""
    run = Run(tmp_path, one="import os; open('pid', 'w').write(str(os.getpid()));" + TICKS)

    async def outside(runtime: RealRuntime) -> None:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        await asyncio.sleep(2.5)

    kinds = run.play(wait, outside)
    assert kinds == [
        "one actor.started", "one actor.exited", "one actor.crashed", "one actor.started", *ENDED,
    ]  # fmt: skip


def test_lines_may_be_heard_and_not_kept(tmp_path: Path) -> None:
    """kube-scheduler's scores of all nodes would fill the disk."""
    heard: list[str] = []
    code = "import sys; print('a score of 3', file=sys.stderr); print('bound', file=sys.stderr)"
    log = tmp_path / "one.log"
    program = Program(Path(sys.executable), ["-c", code], log, hear=heard.append, unkept=(b" score ",))

    async def main() -> None:
        process = Process(program)
        await process.start()
        await process.gone()

    asyncio.run(main())
    assert heard == ["a score of 3\n", "bound\n"]
    assert log.read_text() == "bound\n"
