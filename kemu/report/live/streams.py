"""The events of the run logs for one browser, as server-sent events.

    event: log    id: RUN.PLACE.OFFSET  data: rows [place, time in µs, actor, kind, subject, note]
    event: run    id: RUN.PLACE.OFFSET  data: {"run": 1}                  the next variant begins
    event: skip   id: RUN.PLACE.OFFSET  data: {"from": …, "to": …}        the browser is too slow for single events
    event: state  data: runs.State                                        how far it is
    event: bye    data: {}                                                the server ends

An id says where the stream goes on after this: a browser that was cut off gives it as Last-Event-ID, and misses nothing
and gets nothing twice. The server remembers nothing of a browser. Who is more than ``MOST_BEHIND_BYTES`` behind skips
what it could not show anyway, and fetches the page anew.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

from kemu.errors import RunLogError
from kemu.report.live.runs import Runs
from kemu.runlog.frames import Event
from kemu.runlog.tails import Cursor, Tail

POLL_S = 0.04
STATE_EVERY_S = 0.2
PING_S = 10.0
"""So often something is sent, so that a browser that has gone is noticed."""
ROWS = 400
"""In one message."""
MOST_BEHIND_BYTES = 1 << 20
RECONNECT_MS = 300
NOTE = 160

_ID = re.compile(r"(\d{1,6})\.(\d{1,15})\.(\d{1,18})")
_NOTES = ("reason", "message", "verb", "error", "phase", "status")


def cursor_of(text: str) -> tuple[int, Cursor] | None:
    """Of an id; None where it is none."""
    match = _ID.fullmatch(text)
    return (int(match[1]), Cursor(int(match[2]), int(match[3]))) if match else None


async def stream(runs: Runs, begin: tuple[int, Cursor] | None, is_over: Callable[[], bool]) -> AsyncGenerator[bytes]:
    """``begin``: where to go on; None: with what happens from now on. ``is_over``: the server ends."""
    run, cursor = begin or runs.cursor()
    yield f"retry: {RECONNECT_MS}\n\n".encode()
    tail: Tail | None = None
    told: Any = None
    state_at = sent_at = 0.0
    try:
        while not is_over():
            now = time.monotonic()
            if now - state_at >= STATE_EVERY_S:
                state_at, state = now, runs.state()
                if state != told or now - sent_at >= PING_S:
                    told, sent_at = state, now
                    yield _message("state", state.data())
            path = runs.log(run)
            if path is None:
                await asyncio.sleep(POLL_S)
                continue
            try:
                tail = tail or Tail(path, cursor if cursor.offset else None)
                rows = tail.read(ROWS)
            except RunLogError:
                # An id of another run in this folder: the page has to be fetched anew.
                run, cursor = runs.cursor()
                tail = _closed(tail)
                yield _message("skip", {"from": -1, "to": cursor.place}, run, cursor)
                await asyncio.sleep(POLL_S)
                continue
            if rows:
                sent_at = now
                yield _message("log", [_row(place, event) for place, event in rows], run, tail.cursor)
                if tail.behind() > MOST_BEHIND_BYTES:
                    latest, there = runs.cursor()
                    if (latest, there.place) > (run, tail.cursor.place):
                        skipped = {"from": tail.cursor.place if latest == run else -1, "to": there.place}
                        run, cursor, tail = latest, there, _closed(tail)
                        yield _message("skip", skipped, run, cursor)
            elif runs.is_over(run) and runs.log(run + 1) is not None and not tail.behind():
                run, tail = run + 1, _closed(tail)
                cursor = Cursor(0, 0)
                yield _message("run", {"run": run}, run, cursor)
            else:
                await asyncio.sleep(POLL_S)
        yield _message("state", runs.state().data())
        yield _message("bye", {})
    finally:
        _closed(tail)


def _closed(tail: Tail | None) -> None:
    if tail is not None:
        tail.close()


def _message(event: str, data: Any, run: int = 0, cursor: Cursor | None = None) -> bytes:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    where = f"id: {run}.{cursor.place}.{cursor.offset}\n" if cursor is not None else ""
    return f"event: {event}\n{where}data: {text}\n\n".encode()


def _row(place: int, event: Event) -> list[Any]:
    data = event.data
    subject = data.get("pod") or data.get("node") or data.get("name") or ""
    note = next((str(data[name]) for name in _NOTES if data.get(name)), "")
    return [place, event.time_ns // 1000, event.actor, event.kind, str(subject), note[:NOTE]]
