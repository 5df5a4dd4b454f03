"""Trials of a hunt go on from one set-up of their cluster.

    outcome = snapshots.outcome(project, folder, steps, plan)

A *template* is a process that has started the cluster, with definitions and manifests, and stands still before anybody
can reach it. For each trial it forks, and the child goes on to the trial's end: the same events as from the start.
Where this process may not fork, or the set-up waits for something outside (a webhook), trials begin from the start.

Neighbours: :mod:`kemu.lab.exploration.branches` does so for runs without clients.
"""

from __future__ import annotations

import gc
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, NoReturn, cast

from kemu.errors import KemuError
from kemu.lab.exploration.processes import forks, pipes
from kemu.lab.hunt.perturbations import Perturbation
from kemu.lab.hunt.projects import Project, Step
from kemu.lab.hunt.running import trials
from kemu.lab.hunt.running.trials import Outcome, Trial
from kemu.lab.up import embedded, sessions
from kemu.lab.up.remotes import NoAnswer

_HOST = "127.0.0.1"
_BEGUN = "begun"
"""The folder that the set-up has written to, of which each trial has a copy."""

_templates: list[_Template] = []
"""The one of this process, if it has one."""
_failed: list[object] = []
"""Of what a template came to nothing last."""


def outcome(project: Project, folder: Path, steps: Sequence[Step], plan: Sequence[Perturbation]) -> Outcome:
    """Of a trial. Raises as :meth:`Trial.run` does."""
    if forks.is_alone():
        found = _asked(project, folder, steps, plan)
        if found is not None:
            return found
    return Trial(project, folder, steps, plan).run()


def _asked(project: Project, folder: Path, steps: Sequence[Step], plan: Sequence[Perturbation]) -> Outcome | None:
    """None: it is to be made from the start."""
    # What a template has and hands on to controllers; the scenario is another one when a manifest has changed.
    key = project, id(trials.scenario(project)), dict(os.environ), os.getcwd()
    if key in _failed:
        return None
    if not _templates or _templates[0].key != key:
        close()
        _templates.append(_Template(key, project))
    try:
        answer = _templates[0].ask((folder, steps, plan))
    except BaseException:
        close()
        raise
    if answer is None:
        _failed[:] = [] if _templates[0].has_answered else [key]
        close()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    if isinstance(answer, KemuError):
        raise answer
    return answer


def close() -> None:
    """End the template, if there is one."""
    while _templates:
        _templates.pop().close()


forks.when_idle(close)


class _Template(forks.Child):
    """The process, as its owner sees it."""

    def __init__(self, key: object, project: Project) -> None:
        self.key = key
        self.has_answered = False
        self._place = Path(tempfile.mkdtemp(prefix="kemu-hunt-"))
        super().__init__(lambda *pipes: _stand(project, self._place, *pipes))

    def ask(self, request: object) -> Outcome | KemuError | None:
        """What became of a trial, or what it raised; None: a process has died, or the set-up failed."""
        answer = cast("Outcome | KemuError | None", self._ask(request))
        self.has_answered |= answer is not None
        return answer

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._place, ignore_errors=True)


# In the template, and in its children ---------------------------------------------------------------------------------


def _stand(project: Project, place: Path, requests: BinaryIO, answers: BinaryIO) -> NoReturn:
    """Comes to its end in each child, with its answer, and in the template if the set-up fails."""
    os.setpgrp()  # a Ctrl-C at the terminal is the business of its owner
    trials.prepare(project)
    begun, now = place / _BEGUN, place / "now"
    begun.mkdir()
    now.symlink_to(begun)
    with socket.socket() as kept:  # nobody else gets the port between two trials
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind((_HOST, 0))
        port = kept.getsockname()[1]

        def make(on_up: Callable[[sessions.Up], None]) -> _Standing:
            return _Standing(project, now, on_up, port, requests)

        running = embedded.Running[trials.Session](make)
        standing = running.session
        assert isinstance(standing, _Standing)
        standing.running = running
        running.run()
    if standing.user is None:
        os._exit(1)
    standing.user.join()
    if standing.answer is None:
        os._exit(1)
    pipes.send(answers, standing.answer)
    os._exit(0)


class _Standing(trials.Session):
    """The session of a template, which goes on in its children."""

    running: embedded.Running[trials.Session]

    def __init__(
        self,
        project: Project,
        folder: Path,
        on_up: Callable[[sessions.Up], None],
        port: int,
        requests: BinaryIO,
    ) -> None:
        """``folder``: a symbolic link, which children have to theirs."""
        super().__init__(project, folder, on_up, port)
        self.user: threading.Thread | None = None
        """In a child: performs the steps."""
        self.answer: Outcome | KemuError | None = None
        self._project = project
        self._requests = requests

    def drive(self) -> None:
        if not self.set_up() or not forks.is_alone():
            os._exit(1)
        gc.freeze()
        template = os.getpid()
        while True:
            request = pipes.receive(self._requests)
            if request is None:
                os._exit(0)
            child = os.fork()
            if child == 0:
                forks.enter(template)
                self._begin(*request)
                super().drive()
                return
            if os.waitpid(child, 0)[1]:
                os._exit(1)

    def _begin(self, folder: Path, steps: Sequence[Step], plan: Sequence[Perturbation]) -> None:
        now = self.settings.out
        shutil.copytree(now.with_name(_BEGUN), folder, dirs_exist_ok=True)
        link = now.with_name("next")
        link.symlink_to(folder.absolute())
        link.replace(now)
        assert self.writer is not None
        self.writer.reopen()
        trial = self.trial = Trial(self._project, folder, steps, plan)

        def conduct() -> None:
            try:
                self.answer = trial.run_in(self.running, self.running.up)
            except KemuError as error:
                # As it is known elsewhere: others may have more in them than their words.
                self.answer = (NoAnswer if isinstance(error, NoAnswer) else KemuError)(str(error))

        self.user = threading.Thread(target=conduct, name="user of the hunt")
        self.user.start()
