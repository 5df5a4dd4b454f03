"""The result of a check, and the interface that all checks share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from kemu.lab.checks.history import History
from kemu.lab.checks.limits import DEFAULT, Limits
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.events import Event, handlers


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


class Listener(ABC):  # noqa: B024  # listens to nothing by itself
    """Takes the events of some kinds, and changes of pods.

    The judge shows it nothing that it does not ask for: that is cheaper than to have it look.
    """

    kinds: ClassVar[tuple[str, ...]] = ()
    """Kinds of the events that it takes."""
    actors: ClassVar[Mapping[type[Event], str]] = {}
    """How the names of the actors begin of which it takes these events. Classes that are not named: of all actors."""
    keys: ClassVar[tuple[str, ...]] = ()
    """How the keys begin for which it takes transactions, each the key of a kind of objects. Empty: it takes all."""
    watches: ClassVar[Mapping[type[Event], str]] = {}
    """The resource of the watches of which it takes these events. Classes that are not named: of all watches."""

    verbs: ClassVar[tuple[str, ...]] = ()
    """The verbs of the requests about pods (``api.request``) that it takes. Empty: all."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kinds = tuple(dict.fromkeys((*handlers.kinds(cls.on_event), *handlers.kinds_of(cls))))

    def on_event(self, time_ns: int, actor: str, event: Any) -> None:  # noqa: B027  # optional
        """Called for the events that the annotation of ``event`` names, and that methods ``_on_…`` take."""

    def taker(self, kind: str) -> Callable[[int, str, Any], None] | None:
        """What takes the events of a kind: a method ``_on_…`` or :meth:`on_event`. None: it does not want them, or not
        any more. Asked again at the end of the run."""
        name = handlers.names(type(self)).get(kind)
        found: Callable[[int, str, Any], None] = getattr(self, name) if name else self.on_event
        return found

    def ask_again(self) -> None:  # noqa: B027  # the judge puts something in its place
        """To be called when :meth:`taker` or :meth:`pod_changes` would answer otherwise than before."""

    def pod_changes(self) -> int | None:
        """The changes of pods that it takes: :data:`DEFINITION`, :data:`PHASE` and what stands above it, or
        :data:`STATUS`, which is all of them. None: no change."""
        return None

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:  # noqa: B027
        """A pod has changed, in a way that it asked for; None: it is gone. The message is shared, and may not be
        changed or kept."""


class Fold(Listener):
    """What several checks fold from the log: folded once for all of them, event by event, before they see the event.

    By itself it gives a check nothing but the history.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        """As it is after the event."""


class Check(Listener):
    """Sees the events whose kinds it names, in order, then says its result; one without any judges the history.

    A *check* must hold in every run. A *detector* finds what is legal but unwelcome, beyond some limit: it runs in
    every run too, but changes the verdict only where the scenario sets that limit or expects the detector to hold.
    """

    id: ClassVar[str]
    """Reads like a sentence."""
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

    def given(self, *folds: Any) -> None:  # only those with folds
        """Called once, before any event."""

    def rolled_back(self, time_ns: int, history: History) -> None:  # optional
        """The store came back without its latest revisions; the history is as if they had never been."""

    def concluded(self, findings: list[str], judged: int, nothing: str, good: str) -> Result:
        """The result of a check that counts what it has judged.

        ``nothing`` is said where that is none, ``good`` where all of it is right."""
        if findings:
            return Result(self.id, False, several(findings))
        return Result(self.id, True if judged else None, good if judged else nothing)

    @abstractmethod
    def result(self, history: History) -> Result:
        """What it found. ``holds`` is None where there was nothing to look at, never True."""


class LimitedCheck(Check):
    """A check that looks at the limits of the scenario."""

    @abstractmethod
    def __init__(self, limits: Limits = DEFAULT) -> None: ...

    @classmethod
    def within(cls, limits: Limits) -> Self:
        return cls(limits)


def seconds(time_ns: int) -> str:
    """For people: ``12.345 s``."""
    return f"{time_ns / 1e9:.3f} s"


def several(findings: list[str], limit: int = 3) -> str:
    """The first few, and how many more there are."""
    more = len(findings) - limit
    return "; ".join(findings[:limit]) + (f"; and {more} more" if more > 0 else "")
