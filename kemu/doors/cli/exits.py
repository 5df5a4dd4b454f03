"""Exit codes of all commands."""

from collections.abc import Callable

HOLDS = 0
FAILS = 1
"""A check or an expectation failed."""
INPUT = 2
"""The input is wrong."""
UNKNOWN = 3
"""Something could not be judged, because it never happened in the run."""
RAISED = 4
"""Code raised: what the user brought along (a plugin, an extender, a scheduler), or kemu itself, which is a bug."""
INTERRUPTED = 130

BY_VERDICT = {"holds": HOLDS, "fails": FAILS, "unknown": UNKNOWN}

hearers: list[Callable[[int], object]] = []
"""Who is told the exit code when all output is written: another process may wait for it."""


def heard(code: int) -> int:
    for hear in hearers:
        hear(code)
    return code
