"""``kemu run --resume``: resumes a run whose process was killed.

Its checkpoint is woken where one waits; the run then has the terminal of this command, which passes signals on and ends
with the exit code of the run. Where none waits the run is made again. Neighbour:
:mod:`kemu.lab.scenario.playing.checkpoints`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kemu.doors.cli import exits, inputs, programs
from kemu.doors.cli.progress import Bar
from kemu.errors import KemuError
from kemu.lab.scenario.playing.checkpoints import keeping, waking
from kemu.lab.scenario.playing.checkpoints.keeping import Checkpoints
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.runlog import folders
from kemu.runtime.runlog.frames import FILE_NAME, Reader

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def resume(options: argparse.Namespace, overrides: Callable[[argparse.Namespace], dict[str, Any]]) -> int | None:
    """The exit code of the run that has gone on, or was over already. None: there is no checkpoint; the options then
    say how it is made again. ``overrides``: those of the command line. Raises KemuError where the run cannot go on."""
    folder: Path = options.resume
    wrong: tuple[str, ...] = ("live", "pace", "kubeconfig", "out")
    if options.scenario is None:
        wrong += ("seed", "store", "set", "manifests", "cells")
    for name in wrong:
        if getattr(options, name) not in (None, False, "", [], {}, 0.0):
            raise KemuError(f"--resume goes on with the run in {folder} as it was begun: leave out --{name}")
    if (folder / folders.VERDICT_FILE).is_file():
        return _told_finished(folder, as_json=options.json)
    held = folders.held_in(folder)
    if held is None or held.kind not in ("run", "variants") or not (folder / folders.SCENARIO_FILE).is_file():
        raise KemuError(folders.not_a_run(folder, FILE_NAME))
    _check_virtual(folder)
    found = waking.ask(folder)
    if found is not None and options.scenario is None:
        text = (folder / folders.SCENARIO_FILE).read_text()
        if found.document != keeping.digest(text):
            raise KemuError(f"{folder / folders.SCENARIO_FILE}: has changed since the run began, so it cannot go on")
        return _wake(folder, found, options)
    if found is not None:
        scenario = inputs.load(
            options.scenario, options.data, overrides(options), more_manifests=options.manifests, quiet=True
        )
        if found.document != keeping.digest(scenario.to_yaml()):
            raise KemuError(f"{folder}: its run is not of this scenario with these settings, so it cannot go on")
        return _wake(folder, found, options)
    text = "no checkpoint waits: the run begins anew, and is compared with what is left of it"
    print(f"kemu: {folder}: {text}", file=sys.stderr)
    if options.scenario is None:
        options.scenario = str(folder / folders.SCENARIO_FILE)
    options.out, options.runtime = folder, "sim"
    return None


def same(scenario: Scenario, options: argparse.Namespace, bar: Bar) -> int | None:
    """The exit code of the run in this folder, if it is the one that is asked for, was killed, and has gone on. Raises
    KemuError where its process lives."""
    folder: Path = options.out
    found = waking.ask(folder)
    if found is None:
        return None
    if found.is_running:
        raise KemuError(f"{folder}: a run in this folder goes on, in process {found.run_pid}")
    anew = options.force or options.no_checkpoints or options.live or options.pace
    if anew or found.document != keeping.digest(scenario.to_yaml()):
        return None
    bar.close()
    try:
        return _wake(folder, found, options)
    except KemuError as error:
        print(f"kemu: {error}; it begins anew", file=sys.stderr)
        return None


@contextlib.contextmanager
def kept(checkpoints: Checkpoints | None, options: argparse.Namespace) -> Iterator[None]:
    """Within this a run is made. Its checkpoint is kept where it ends by what has nothing to do with it: a full disk,
    too little memory."""
    if checkpoints is None:
        yield
        return
    try:
        yield
    except Exception as error:
        causes = (error, error.__cause__)
        if checkpoints.made_s is None or not any(isinstance(one, OSError | MemoryError) for one in causes):
            checkpoints.finish()
        elif not options.json:
            command = f"{programs.name()} run --resume {shlex.quote(str(options.out))}"
            print(f"kemu: {command} goes on at {checkpoints.made_s:.0f} s, from a checkpoint", file=sys.stderr)
        raise
    checkpoints.finish()


def _told_finished(folder: Path, *, as_json: bool) -> int:
    verdict = folders.verdict_of(folder)
    if as_json:
        print(json.dumps(verdict))
    else:
        print(f"{folder}: the run is over already: {verdict['headline']}")
    return exits.BY_VERDICT[verdict["verdict"]]


def _check_virtual(folder: Path) -> None:
    for each in folders.runs_in(folder):
        with Reader(each / FILE_NAME) as reader:
            runtime = reader.header.get("runtime")
        if runtime != "sim" or (each / folders.INPUTS_FILE).exists():
            why = "its clients are gone" if runtime == "sim" else "a run in real time cannot go on"
            raise KemuError(f"{folder}: {why}: kemu recover {each} judges it as far as it went")


@contextlib.contextmanager
def _held_back() -> Iterator[Callable[[], object]]:
    """Signals wait, within this or until the function that it gives is called: there is somebody to pass them on to."""

    def let_go() -> object:
        return signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)

    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    try:
        yield let_go
    finally:
        let_go()


def _wake(folder: Path, found: waking.Found, options: argparse.Namespace) -> int:
    wants = {"json": options.json, "report": options.report}
    code = None
    with contextlib.suppress(waking.Died), _held_back() as let_go, waking.woken(folder, wants) as (pid, opened):
        if not options.json:
            print(f"kemu: {folder}: the run goes on at {found}, from its checkpoint", file=sys.stderr)

        def pass_on(number: int, _: object) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

        def stop(*_: object) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                os.kill(os.getpid(), signal.SIGSTOP)
                os.kill(pid, signal.SIGCONT)

        before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
        before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, stop)
        let_go()
        try:
            code = waking.receive(opened).get("exit")
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    if code is None:
        command = f"{programs.name()} run --resume {shlex.quote(str(folder))}"
        print(f"kemu: the run was killed; {command} goes on with it again", file=sys.stderr)
        return exits.UNKNOWN
    return int(code)
