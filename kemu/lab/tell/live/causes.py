"""Why a run that goes on went wrong so far: its causes, found anew at a stated pace, for the first screen of the page.

Role: a thread of its own beside :mod:`runs`. It reads the log once more, as causes need more of it than the views do,
and rests in between: found causes are as fresh as a fifth of one core allows, and nobody waits for them.
"""

from __future__ import annotations

import itertools
import time

from kemu.errors import RunLogError
from kemu.lab.tell.causes import evidence as evidences
from kemu.lab.tell.causes import finding
from kemu.lab.tell.live.runs import Followed, Runs
from kemu.runtime.runlog import folders
from kemu.runtime.runlog.tails import Tail

POLL_S = 0.04
EVERY_S = 1.0
"""At least so long from one answer to the next."""
AT_ONCE = 500
"""Events that are read before it rests."""
REST = 4.0
"""After some work it rests so many times as long as that took: a fifth of one core at most."""
MOST_EVENTS = 2_000_000
"""What a longer log says is not read, and the page tells until when its causes were found."""


def follow(runs: Runs) -> None:
    """Of one run after the other, until they stop."""
    for index in itertools.count():
        while (run := runs.followed(index)) is None:
            if runs.is_stopping:
                return
            time.sleep(POLL_S)
        _Finder(runs, run).follow()


class _Finder:
    def __init__(self, runs: Runs, run: Followed) -> None:
        self._runs, self._run = runs, run
        self._evidence = evidences.Evidence()
        self._evidence.document = evidences.document(run.folder / folders.SCENARIO_FILE)
        self._found_at = -EVERY_S
        self._is_news = False

    def follow(self) -> None:
        """To the end of the run."""
        try:
            with Tail(self._run.log) as tail:
                while not self._runs.is_stopping and tail.cursor.place < MOST_EVENTS:
                    is_last = self._run.is_judged  # nothing is written after that
                    begun = time.thread_time()
                    count = self._read(tail)
                    if is_last and not count:
                        self._evidence.over()
                        self._runs.caused(self._run, finding.causes(self._evidence).to_json(), is_last=True)
                        return
                    self._find()
                    took_s = time.thread_time() - begun
                    # Over is over: nobody else wants that core, and whoever looks wants the end.
                    rest_s = 0.0 if is_last and self._runs.has_ended else REST * took_s
                    time.sleep(rest_s if count else max(rest_s, POLL_S))
        except RunLogError:
            pass  # the thread that folds tells it
        self._runs.caused(self._run, self._run.causes, is_last=True)

    def _read(self, tail: Tail) -> int:
        events = tail.read(AT_ONCE)
        for _, event in events:
            if event.kind not in evidences.OF_CHECKS:
                self._evidence.feed(*event)
        self._is_news = self._is_news or bool(events)
        return len(events)

    def _find(self) -> None:
        """Where somebody looks, and there is news."""
        now = time.monotonic()
        if not self._is_news or now - self._found_at < EVERY_S or not self._runs.was_asked():
            return
        with self._evidence.so_far():
            found = finding.causes(self._evidence).to_json()
        self._is_news, self._found_at = False, time.monotonic()
        self._runs.caused(self._run, found)
