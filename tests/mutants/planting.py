"""What a mutant is, and how a scenario is run with a bug planted in it."""

from __future__ import annotations

import functools
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.objects import resources
from kemu.emulated.settings import documents
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.runtime.holds import EventPattern
from kemu.runtime.runlog.frames import Entry

Plant = Callable[[pytest.MonkeyPatch], None]

BUDGET = 20
"""Seeds within which a mutant must be found, unless it states another budget."""


@dataclass(frozen=True)
class Decides:
    """The event that decides whether the bug shows itself, in the terms of the run log. It was named by thought, before
    anything was measured; :mod:`tests.mutants.decisions` measures it."""

    bed: str
    """The scenario of :mod:`tests.mutants.chances` in which chance decides."""
    check: str
    """What fails there."""
    what: str
    """A word of :data:`~kemu.runtime.holds.HAPPENINGS`, or a kind of event. ``stored``: a write of the pod."""
    pod: str = ""
    actor: str = ""
    """Empty: whoever."""
    count: int = 1
    """The how-manieth event of that sort."""

    def place(self, events: Sequence[Entry]) -> int:
        """Where it stands in a run log. Raises ValueError where it does not."""
        pattern = EventPattern(self.actor, self.what, "" if self.what == "stored" else self.pod)
        left = self.count
        for place, (_, actor, kind, data) in enumerate(events):
            if pattern.fits(actor, kind, data) and (self.what != "stored" or self._is_written(data)):
                left -= 1
                if left == 0:
                    return place
        raise ValueError(f"the run has no such event: {self}")

    def _is_written(self, data: Mapping[str, Any]) -> bool:
        key = resources.prefix(resources.BY_PLURAL["pods"], "default") + self.pod.encode()
        return any(str(change[1]).encode() == key for change in data["changes"])


@dataclass(frozen=True)
class Mutant:
    """A bug that somebody could have written."""

    id: str
    """Says what is wrong."""
    part: str
    plant: Plant
    runs: tuple[str, ...]
    """Where to look for it, in this order: the name of a shipped scenario, then settings ``PATH=VALUE``, as a shell
    splits them."""
    budget: int = BUDGET
    survives: str = ""
    """Why no check can find it; then it is not asked."""
    decides: Decides | None = None
    """Of those that chance decides about."""


MUTANTS: dict[str, Mutant] = {}
"""All of them, by id, in the order in which they were planted."""


def mutant(
    part: str, name: str, *runs: str, budget: int = BUDGET, survives: str = "", decides: Decides | None = None
) -> Callable[[Plant], Plant]:
    """Plants a bug under this name; the decorated function changes the code by its ``pytest.MonkeyPatch``."""

    def register(plant: Plant) -> Plant:
        assert name not in MUTANTS, f"a second mutant {name}"
        MUTANTS[name] = Mutant(name, part, plant, runs, budget, survives, decides)
        return plant

    return register


@dataclass(frozen=True)
class Outcome:
    """What a run said."""

    verdict: str
    """As in verdict.json, or ``broke`` if the run ended with an exception."""
    failed: tuple[str, ...]
    """Checks and expectations that do not hold, checks first."""
    why: Mapping[str, str]
    """By their ids."""


def run(where: str, seed: int) -> Outcome:
    """Run a scenario, as the process stands now."""
    name, *settings = shlex.split(where)
    overrides: dict[str, Any] = {"seed": seed}
    for setting in settings:
        path, _, value = setting.partition("=")
        overrides[path] = documents.parse(value, path)[0].data
    scenario = loader.load(catalog.find(name), None, overrides)
    with tempfile.TemporaryDirectory(prefix="kemu-mutant-") as folder:
        try:
            verdict, _ = runner.run_all(scenario, runner.Options(out=Path(folder) / "run", runtime="sim"))
        except errors.SimulationError as error:
            return Outcome("broke", (), {"": str(error)})
    judged = [
        each
        for variant in verdict.get("variants", [verdict])
        for each in (*variant["checks"], *variant["expectations"])
    ]
    failed = {each["id"]: each["detail"] for each in judged if each["holds"] is False}
    return Outcome(verdict["verdict"], tuple(failed), failed)


@functools.cache
def run_sound(where: str, seed: int) -> Outcome:
    """Without any bug."""
    return run(where, seed)


def run_mutant(planted: Mutant, where: str, seed: int) -> Outcome:
    with pytest.MonkeyPatch.context() as patch:
        planted.plant(patch)
        return run(where, seed)


def killers(planted: Mutant, where: str, seed: int) -> tuple[str, ...]:
    """The checks and expectations that fail with the bug and not without it."""
    sound = run_sound(where, seed)
    return tuple(name for name in run_mutant(planted, where, seed).failed if name not in sound.failed)
