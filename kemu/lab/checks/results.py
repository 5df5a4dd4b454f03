"""The result of a check, and the interface that all checks share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from kemu.lab.checks.history import History
from kemu.lab.checks.limits import Limits
from kemu.runtime.runlog.events import handlers


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one check."""

    id: str
    holds: bool | None
    """None: nothing in the run could be judged."""
    detail: str
    """What was examined, or what is wrong: who, when, where."""
    detector: bool = False
    asked: bool = True
    """It changes the verdict. A detector does only where the scenario sets a limit for it."""


class Fold(ABC):
    """What several checks fold from the log: folded once for all of them, event by event, before they see the event."""

    kinds: ClassVar[tuple[str, ...]] = ()
    """Kinds of the events that it takes."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kinds = tuple(dict.fromkeys((*handlers.kinds(cls.on_event), *handlers.kinds_of(cls))))

    def __init__(self, history: History) -> None:
        self.history = history
        """As it is after the event."""

    @abstractmethod
    def on_event(self, time_ns: int, actor: str, event: Any) -> None:
        """Called for the events that the annotation of ``event`` names, and that methods ``_on_…`` take."""


class Check(ABC):
    """Sees the events whose kinds it names, in order, then says its result.

    A *check* must hold in every run. A *detector* finds what is legal but unwelcome, beyond some limit: it runs in
    every run too, but changes the verdict only where the scenario sets that limit or expects the detector to hold.
    """

    id: ClassVar[str]
    """Reads like a sentence."""
    kinds: ClassVar[tuple[str, ...]] = ()
    detector: ClassVar[bool] = False
    folds: ClassVar[tuple[type[Fold], ...]] = ()
    """What it reads beside the history; :meth:`given` gets them in this order."""

    @classmethod
    def within(cls, limits: Limits) -> Self:
        """The check as the scenario wants it."""
        return cls()

    @classmethod
    def is_asked(cls, limits: Limits) -> bool:
        """Whether it changes the verdict, unless an expectation names it."""
        return not cls.detector

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kinds = tuple(dict.fromkeys((*handlers.kinds(cls.on_event), *handlers.kinds_of(cls))))

    def given(self, *folds: Any) -> None:  # noqa: B027  # only those with folds
        """Called once, before any event."""

    def rolled_back(self, time_ns: int, history: History) -> None:  # noqa: B027  # optional
        """The store came back without its latest revisions; the history is as if they had never been."""

    def on_event(self, time_ns: int, actor: str, event: Any) -> None:  # noqa: B027  # optional
        """Called for the events that the annotation of ``event`` names; a check without any judges the history."""

    def concluded(self, findings: list[str], judged: int, nothing: str, good: str) -> Result:
        """The result of a check that counts what it has judged.

        ``nothing`` is said where that is none, ``good`` where all of it is right."""
        if findings:
            return Result(self.id, False, several(findings))
        return Result(self.id, True if judged else None, good if judged else nothing)

    @abstractmethod
    def result(self, history: History) -> Result:
        """What it found. ``holds`` is None where there was nothing to look at, never True."""


def seconds(time_ns: int) -> str:
    """For people: ``12.345 s``."""
    return f"{time_ns / 1e9:.3f} s"


def several(findings: list[str], limit: int = 3) -> str:
    """The first few, and how many more there are."""
    more = len(findings) - limit
    return "; ".join(findings[:limit]) + (f"; and {more} more" if more > 0 else "")
