"""The events of the run logs for one browser, as server-sent events.

    event: log    id: RUN.PLACE.OFFSET  data: rows [place, time in µs, actor, kind, subject, note]
    event: run    id: RUN.PLACE.OFFSET  data: {"run": 1}                  the next variant begins
    event: skip   id: RUN.PLACE.OFFSET  data: {"from": …, "to": …}        the browser is too slow for single events
    event: state  data: runs.State                                        how far it is
    event: bye    data: {}                                                the server ends

An id says where the stream goes on after this: a browser that was cut off gives it as Last-Event-ID, and misses nothing
and gets nothing twice. The server remembers nothing of a browser. Who is more than ``MOST_BEHIND`` events behind skips
what it could not show anyway, and fetches the page anew.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Callable
from types import TracebackType
from typing import Any, Self

from kemu.emulated.objects.plain import Json
from kemu.errors import RunLogError
from kemu.lab.tell.live.runs import Runs
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.runlog.tails import Cursor, Tail

POLL_S = 0.04
STATE_EVERY_S = 0.2
PING_S = 10.0
"""So often something is sent, so that a browser that has gone is noticed."""
ROWS = 400
"""In one message."""
MOST_BEHIND = 4_000
"""Events."""
MOST_BEHIND_BYTES = 1 << 17
"""Of the log of an earlier run: about as many."""
RECONNECT_MS = 100
NOTE = 160

BEGIN = Cursor(0, 0)
"""The cursor in a run that has not been read yet."""
_ID = re.compile(r"(\d{1,6})\.(\d{1,15})\.(\d{1,18})")
_NOTES = ("reason", "message", "verb", "error", "phase", "status")


def cursor_of(text: str) -> tuple[int, Cursor] | None:
    """Cursor of an id; None where it is none."""
    match = _ID.fullmatch(text)
    return (int(match[1]), Cursor(int(match[2]), int(match[3]))) if match else None


async def stream(runs: Runs, begin: tuple[int, Cursor] | None, is_over: Callable[[], bool]) -> AsyncGenerator[bytes]:
    """``begin``: where to go on; None: with what happens from now on. ``is_over``: the server ends."""
    run, cursor = begin or runs.cursor()
    yield f"retry: {RECONNECT_MS}\n\n".encode()
    told: Any = None
    state_at = sent_at = 0.0
    with _Log(runs) as log:
        while not is_over():
            now = time.monotonic()
            if now - state_at >= STATE_EVERY_S:
                state_at, state = now, runs.state()
                if state != told or now - sent_at >= PING_S:
                    told, sent_at = state, now
                    yield _message("state", state.data())
            try:
                rows = log.read(run, cursor)
            except RunLogError:
                # An id of another run in this folder: the page has to be fetched anew.
                run, cursor = runs.cursor()
                yield _message("skip", {"from": -1, "to": cursor.place}, run, cursor)
                await asyncio.sleep(POLL_S)
                continue
            if rows:
                sent_at, cursor = now, log.cursor
                yield _message("log", [_row(place, event) for place, event in rows], run, cursor)
                latest, there = runs.cursor()
                if there.place - cursor.place > MOST_BEHIND if latest == run else log.behind > MOST_BEHIND_BYTES:
                    skipped = {"from": cursor.place if latest == run else -1, "to": there.place}
                    run, cursor = latest, there
                    yield _message("skip", skipped, run, cursor)
            elif log.is_over(run) and runs.log(run + 1) is not None:
                run, cursor = run + 1, BEGIN
                yield _message("run", {"run": run}, run, cursor)
            else:
                await asyncio.sleep(POLL_S)
    yield _message("state", runs.state().data())
    yield _message("bye", {})


class _Log:
    """The file that is read, of one run after the other."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._run = -1
        self._tail: Tail | None = None

    def read(self, run: int, cursor: Cursor) -> list[tuple[int, Entry]]:
        """Some events from the cursor on. Raises RunLogError where none begins there."""
        path = self._runs.log(run)
        if path is None:
            return []
        if self._tail is None or run != self._run or cursor not in (self._tail.cursor, BEGIN):
            self.close()
            self._run, self._tail = run, Tail(path, cursor if cursor != BEGIN else None)
        return self._tail.read(ROWS)

    @property
    def cursor(self) -> Cursor:
        """Behind what was read."""
        return self._tail.cursor if self._tail is not None else BEGIN

    @property
    def behind(self) -> int:
        return self._tail.behind() if self._tail is not None else 0

    def is_over(self, run: int) -> bool:
        """All of it was read, and nothing will be added."""
        return self._runs.log(run) is not None and self._runs.is_over(run) and not self.behind

    def close(self) -> None:
        tail, self._tail = self._tail, None
        if tail is not None:
            tail.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _message(event: str, data: Json, run: int = 0, cursor: Cursor | None = None) -> bytes:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    where = f"id: {run}.{cursor.place}.{cursor.offset}\n" if cursor is not None else ""
    return f"event: {event}\n{where}data: {text}\n\n".encode()


def _row(place: int, event: Entry) -> list[Any]:
    data = event.data
    subject = data.get("pod") or data.get("node") or data.get("name") or ""
    note = next((str(data[name]) for name in _NOTES if data.get(name)), "")
    return [place, event.time_ns // 1000, event.actor, event.kind, str(subject), note[:NOTE]]
