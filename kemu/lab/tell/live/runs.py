"""What is followed: run logs one after the other, each folded into the data of the page while it is written.

A thread folds (:meth:`Runs.follow`); a reader of the page asks for :meth:`Runs.page`, from any thread.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kemu.errors import RunLogError
from kemu.lab.tell.causes import evidence
from kemu.lab.tell.page import folds, pages, shells, summaries, troubles
from kemu.runtime.runlog import folders
from kemu.runtime.runlog.frames import FILE_NAME
from kemu.runtime.runlog.tails import Cursor, Tail
from kemu.runtime.words import listed

POLL_S = 0.04
AT_ONCE = 2_000
"""Events that are folded before others get a turn."""
MOST_BYTES = 32 << 20
"""Most bytes of the data of runs that are over; of further ones there is only the first screen."""
REST = 2.0
"""After a page was made, so many times as long as that took, the same one is served: browsers that ask more often
cannot take more than a third of the process's time."""
LEAST_REST_S = 0.1

GOING_ON, INTERRUPTED, OVER, LOST = "going on", "interrupted", "over", "lost"


@dataclass(frozen=True)
class Made:
    """What the page has of one run: JSON, and the HTML of its first screen."""

    data: str
    first: str


@dataclass
class Followed:
    """One run."""

    folder: Path
    name: str
    """Name of the variant; empty where there is only one run."""
    duration_s: float
    tail: Tail
    fold: folds.Fold
    is_judged: bool = False
    final: Made | None = None
    """Once nothing can change it any more."""
    is_closed: bool = False
    """Its fold is."""
    explanation: Mapping[str, Any] | None = None
    """Why it fails, or why one side lost, as in explanation.json."""
    commands: Sequence[tuple[str, str]] = ()
    """With what they do."""
    causes: Mapping[str, Any] | None = None
    """Why it went wrong so far, as :meth:`kemu.lab.tell.causes.roots.Causes.to_json` has it; None: not looked for."""
    are_causes_final: bool = True
    observed: Sequence[Mapping[str, Any]] = ()
    """What a real cluster said at these times."""

    @property
    def log(self) -> Path:
        return self.folder / FILE_NAME

    @property
    def is_complete(self) -> bool:
        return self.is_judged and self.tail.behind() == 0


@dataclass(frozen=True)
class State:
    """How far everything is, for the line that tells it."""

    phase: str
    text: str
    """What it came to."""
    run: int
    runs: int
    """That there will be."""
    name: str
    now_s: float
    duration_s: float
    events: int
    pods: int
    bound: int
    edition: int
    """Changes when what is told of a run that is over does."""
    caused: float
    """Until when causes were found, in seconds of the run."""
    search: Mapping[str, Any] | None
    """What is said of a search for runs that fail: ``status figures lines``, in words. Its findings are the runs of the
    page."""

    def data(self) -> dict[str, Any]:
        return dict(self.__dict__)


@dataclass
class Runs:
    title: str = ""
    description: str = ""
    count: int = 1
    """How many runs there will be."""
    phase: str = GOING_ON
    text: str = ""
    verdict: Mapping[str, Any] = field(default_factory=dict)
    """Verdict of the whole, when it is over."""
    search: Mapping[str, Any] | None = None
    """See :class:`State`."""

    finds_causes: bool = False
    """A thread looks for them: :func:`kemu.lab.tell.live.causes.follow`."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._runs: list[Followed] = []
        self._page: tuple[Any, bytes, float] | None = None
        """What it shows, the page, and until when it is served whatever happens."""
        self.is_stopping = False
        self._asked = False
        """Somebody has looked since causes were found."""
        self._edition = 0
        """Edition of the data of runs that are over; a new one where those change after all."""

    # --- what the driver tells

    def begin(self, folder: Path, name: str, duration_s: float) -> None:
        """The next run: its log has a header."""
        tail = Tail(folder / FILE_NAME)
        with self._lock:
            run = Followed(folder, name, duration_s, tail, folds.Fold(tail.header))
            run.are_causes_final, run.observed = not self.finds_causes, _observed(folder)
            self._runs.append(run)

    def judged(self) -> None:
        """The last run that began is over, and has its verdict."""
        with self._lock:
            if self._runs:
                self._runs[-1].is_judged = True

    def end(self, phase: str, text: str, verdict: Mapping[str, Any] | None = None) -> None:
        """There will be no further run."""
        self.phase, self.text, self.verdict = phase, text, verdict or {}
        if phase != OVER:
            self.judged()

    def explained(
        self,
        run: int,
        explanation: Mapping[str, Any] | None,
        commands: Sequence[tuple[str, str]],
        causes: Mapping[str, Any] | None = None,
    ) -> None:
        """What is known of a run only when it is over; ``commands``: with what they do; ``causes``: with a run without
        the first of them."""
        with self._making:
            if 0 <= run < len(self._runs):
                one = self._runs[run]
                one.explanation, one.commands, one.final = explanation, commands, None
                if causes is not None:
                    one.causes, one.are_causes_final = causes, True
                self._edition += 1

    # --- what the thread that looks for causes asks and tells

    def followed(self, index: int) -> Followed | None:
        """None: that run has not begun."""
        return self._runs[index] if index < len(self._runs) else None

    def was_asked(self) -> bool:
        """Somebody has looked since the last answer."""
        return self._asked

    def caused(self, run: Followed, causes: Mapping[str, Any] | None, *, is_last: bool = False) -> None:
        with self._making:
            if run.are_causes_final:
                return  # those are better that the command told
            tells = any(one is not None and (one["roots"] or one["symptoms"]) for one in (run.causes, causes))
            run.causes, run.are_causes_final, self._asked = causes, is_last, False
            if is_last and tells and run.final is not None:
                run.final = None
                self._edition += 1

    # --- folding

    def follow(self) -> None:
        """Until :meth:`stop`; in a thread of its own."""
        while not self.is_stopping:
            if not self._fold_some():
                time.sleep(POLL_S)
        for run in self._runs:
            run.tail.close()

    def stop(self) -> None:
        self.is_stopping = True

    def _fold_some(self) -> bool:
        """Whether there was anything to do."""
        with self._lock:
            run = next((run for run in self._runs if run.final is None and not run.is_complete), None)
            if run is None:
                return False
            try:
                events = run.tail.read(AT_ONCE)
            except RunLogError as error:
                self.phase, self.text = LOST, str(error)
                run.is_judged = True
                return False
            for place, event in events:
                run.fold.feed(place, *event)
        return bool(events)

    # --- what is asked

    def __len__(self) -> int:
        return len(self._runs)

    def log(self, run: int) -> Path | None:
        """None: that run has not begun."""
        return self._runs[run].log if 0 <= run < len(self._runs) else None

    def is_over(self, run: int) -> bool:
        """Nothing will be added to its log."""
        return self._runs[run].is_judged

    def cursor(self) -> tuple[int, Cursor]:
        """The latest run, and how far its log was read."""
        return (len(self._runs) - 1, self._runs[-1].tail.cursor) if self._runs else (0, Cursor(0, 0))

    def state(self) -> State:
        if not self._runs:
            return State(self.phase, self.text, 0, self.count, "", 0.0, 0.0, 0, 0, 0, 0, 0.0, self.search)
        run = self._runs[-1]
        history = run.fold.history
        return State(
            self.phase,
            self.text,
            len(self._runs) - 1,
            max(self.count, len(self._runs)),
            run.name,
            round(history.now_ns / 1e9, 3),
            run.duration_s,
            run.tail.cursor.place,
            len(history.pods),
            history.counts["pods_bound"],
            self._edition,
            (run.causes or {}).get("end_s", 0.0),
            self.search,
        )

    def page(self, known: int = 0, edition: int = 0) -> tuple[bytes, bool]:
        """``{page, firsts, live}`` as JSON; while nothing has changed, or the last was made just now, the same bytes.
        And whether it is the last one: it shows how everything ended.

        ``known``: so many runs at the beginning the browser has already, as they will stay: they are null; in which
        ``edition``.
        """
        with self._making:
            self._asked = True
            run, cursor = self.cursor()
            known = min(known, sum(one.final is not None for one in self._runs)) if edition == self._edition else 0
            told = [(one.is_judged, id(one.causes), one.are_causes_final) for one in self._runs]
            key = (run, cursor, self.phase, known, self._edition, told)
            if self._page is not None:
                made_of, page, until = self._page
                if made_of == key or (made_of[3] == known and time.monotonic() < until):
                    return page, made_of == key and self._is_settled()
            begun = time.monotonic()
            page = self._whole(run, cursor, known)
            took_s = time.monotonic() - begun
            self._page = key, page, time.monotonic() + max(REST * took_s, LEAST_REST_S)
            return page, self._is_settled() and cursor == self.cursor()[1]

    def _is_settled(self) -> bool:
        return self.has_ended and all(run.is_complete and run.are_causes_final for run in self._runs)

    @property
    def has_ended(self) -> bool:
        return self.phase != GOING_ON

    def _whole(self, run: int, cursor: Cursor, known: int) -> bytes:
        count = run + 1 if self._runs else 0
        made = [self._made(index) if index >= known else None for index in range(count)]
        shell = _json({name: value for name, value in self.shell().items() if name != "runs"})
        datas = ",".join("null" if one is None else one.data for one in made)
        firsts = _json({index: one.first for index, one in enumerate(made) if one is not None})
        finals = sum(one.final is not None for one in self._runs[: run + 1])
        state = self.state().data()
        live = _json({"run": run, **cursor._asdict(), "known": finals, "edition": self._edition, "state": state})
        return f'{{"page":{shell[:-1]},"runs":[{datas}]}},"firsts":{firsts},"live":{live}}}'.encode()

    def shell(self) -> dict[str, Any]:
        """The page without its runs."""
        matrix = pages.matrix(self.verdict)
        found = {name: self.verdict[name] for name in ("headline", "search") if name in self.verdict}
        return {"title": self.title, "description": self.description, "runs": [], "matrix": matrix, **found}

    def _made(self, index: int) -> Made:
        run = self._runs[index]
        if run.final is not None:
            return run.final
        with self._lock:
            is_complete = run.is_complete
            if is_complete and not run.is_closed:
                run.is_closed = True
                run.fold.close()
            verdict = _verdict(run.folder) if run.is_judged else {}
            data = run.fold.data(verdict, summaries.events_of(run.explanation))
            data["name"] = run.name
            data["summary"] = summaries.of(run.fold, verdict, run.explanation, run.commands, data["classes"])
            as_of_s = None if run.are_causes_final else (run.causes or {}).get("end_s")
            data["summary"] |= troubles.of(run.fold, data, verdict, run.causes, run.observed, as_of_s)
            if self.phase == GOING_ON and not verdict:
                lost = troubles.losses(run.fold)
                data["summary"]["headline"] = f"so far {listed(lost) or 'nothing was evicted or killed'}"
            if self.phase in (INTERRUPTED, LOST) and not verdict:
                data["summary"] |= {"in_words": "Broken off", "headline": self.text}
        first = shells.first_screen(data, index, self.shell())
        made = Made(_json(data), first)
        if is_complete:
            kept = sum(len(one.final.data) for one in self._runs if one.final is not None)
            if kept + len(made.data) > MOST_BYTES:
                rest = {"name": run.name, "summary": data["summary"], "strings": [], "left_out": True}
                made = Made(_json(rest), first)
            run.final = made
        return made


def _observed(folder: Path) -> list[Mapping[str, Any]]:
    for place in (folder, folder.parent):  # a variant stands in the folder of its matrix
        if (place / folders.SCENARIO_FILE).is_file():
            return list(evidence.document(place / folders.SCENARIO_FILE).get("observed") or ())
    return []


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _verdict(folder: Path) -> dict[str, Any]:
    """Empty where the run has none, as one that was interrupted."""
    try:
        found: dict[str, Any] = json.loads((folder / folders.VERDICT_FILE).read_text())
    except (OSError, ValueError):
        return {}
    return found
