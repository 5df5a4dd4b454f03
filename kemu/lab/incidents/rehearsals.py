"""The first moment of what was made: whether the API server takes all objects.

What the loader cannot know, such as an address that is taken or a webhook's answer, is known when the objects are
created. What is refused then is left out, and told.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from kemu import errors
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner

MOST = 25
"""Objects that are left out in this way; more are told as mistakes."""
_LENGTH = "1ms"


def rehearse(scenario: Path, leave_out: Callable[[errors.Problem], bool]) -> None:
    """Create all objects. ``leave_out``: take away the object at the place of a refusal; whether it did. Raises
    ScenarioError for what is left."""
    for turn in range(MOST + 1):
        loaded = loader.load(scenario, overrides={"duration": _LENGTH})
        with tempfile.TemporaryDirectory(prefix="kemu-import-") as folder:
            try:
                runner.run_all(loaded, runner.Options(out=Path(folder) / "run"))
                return
            except errors.ScenarioError as error:
                if turn == MOST or not all(leave_out(problem) for problem in error.problems):
                    raise
