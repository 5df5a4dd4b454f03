"""Panics in what a controller prints, also those after which it goes on. Errors that it expects, and logs, are none."""

from __future__ import annotations

import re

_MOST = 200
"""Characters of a line that are kept."""
_PANIC = re.compile(
    r"^panic: "
    r"|^fatal error: |^unexpected fault address "  # Go's runtime
    r"|Observed a panic"  # client-go and controller-runtime, which recover
    r"|http: panic serving "
    r"|^thread '.*' (\(\d+\) )?panicked at "  # Rust
    r"|java\.lang\.OutOfMemoryError|java\.lang\.StackOverflowError"
    r"|^Exception in thread "  # Python and Java: a worker is gone
    r"|^Task exception was never retrieved"  # asyncio
    r"|UnhandledPromiseRejection"
)
_TRACEBACK = "Traceback (most recent call last)"


class Output:
    """Lines of one controller. ``panics``: each kind of them once."""

    def __init__(self) -> None:
        self.panics: list[str] = []
        self.last_error = ""
        """The exception of the last traceback: why it ended, if it did."""
        self._is_in_traceback = False
        self._thread = ""

    def take(self, line: str) -> None:
        text = line.strip()
        if self._is_in_traceback:
            if text and not line.startswith((" ", "\t")) and not text.startswith(_TRACEBACK):
                self._is_in_traceback = False
                self.last_error = text[:_MOST]
                if self._thread:
                    self._add(f"{self._thread} {text}")
                self._thread = ""
            return
        if text.startswith(_TRACEBACK):
            self._is_in_traceback = True
            return
        self._thread = ""
        if not _PANIC.search(text):
            return
        if text.startswith("Exception in thread ") and text.endswith(":"):
            self._thread = text  # Python: what it is follows
        else:
            self._add(text)

    def _add(self, text: str) -> None:
        plain = re.sub(r"\d+", "0", text)
        if all(re.sub(r"\d+", "0", one) != plain for one in self.panics):
            self.panics.append(text[:_MOST])
