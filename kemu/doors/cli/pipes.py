"""What all commands print goes through here: a reader may stop early, and names cannot steer the terminal.

Into a pipe whose reader stops early (``head``, ``less``) the command goes on and exits as it would have: the exit code
of every command is the same with and without the pipe, however much of the output was read. Control characters that
come from a scenario, a dump or a run folder are shown as ``\\u001b``, as in JSON; of escape sequences only colours
pass.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast

from kemu.runtime.words import STEERING, harmless

_NEITHER_MOVING = re.compile(STEERING.replace(r"\r(?!\n)|", "").replace("0-9;]*m", "0-9;?]*[mAKhl]"))
"""All but what moves the cursor up, erases a line, and hides the cursor."""


def steer(stream: TextIO, sequence: str) -> None:
    """Write one of kemu's own sequences that move the cursor."""
    (stream.write_as_it_is if isinstance(stream, _Outliving) else stream.write)(sequence)


def moving(stream: TextIO) -> TextIO:
    """The stream for a display that is drawn again and again. What is drawn has to be harmless already."""
    return cast(TextIO, _Moving(stream))


@contextlib.contextmanager
def outlived() -> Iterator[None]:
    """Within this, a write to standard output or error never fails because there is no reader."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, _Outliving(stream)) for stream in before)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = before


class _Stream:
    """A text stream that forwards everything that a subclass does not override."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Outliving(_Stream):
    """A text stream that discards its output once its reader has gone."""

    def write(self, text: str) -> int:
        return self.write_as_it_is(harmless(text))

    def write_as_it_is(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._leave()
            return len(text)

    def writelines(self, lines: list[str]) -> None:
        self.write("".join(lines))

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._leave()

    def _leave(self) -> None:
        """Redirect the stream's pending and later output to the null device."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self._stream.fileno())
        os.close(null)


class _Moving(_Stream):
    def write(self, text: str) -> int:
        steer(self._stream, harmless(text, _NEITHER_MOVING))
        return len(text)
