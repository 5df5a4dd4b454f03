"""Panics in the output of controllers, and errors that are none."""

from __future__ import annotations

import pytest

from kemu.lab.hunt.running.outputs import Output

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    x()\nValueError: no'
GO = "panic: runtime error: index out of range [3] with length 2"
RECOVERED = 'E1128 10:00:00.000000 1 runtime.go:142] "Observed a panic" panic="runtime error: invalid memory address"'
REACTOR = '2026-01-01T00:00:00Z ERROR Reconciler error {"controller": "w", "error": "Operation cannot be fulfilled"}'


@pytest.mark.parametrize(
    ("text", "panics"),
    [
        (f"{GO}\n\ngoroutine 1 [running]:\nmain.main()", [GO]),
        (RECOVERED, [RECOVERED]),
        (REACTOR, []),
        ("fatal error: concurrent map writes", ["fatal error: concurrent map writes"]),
        (f"Exception in thread Thread-1 (run):\n{TRACEBACK}", ["Exception in thread Thread-1 (run): ValueError: no"]),
        (f"ERROR handler failed\n{TRACEBACK}\nnext line", []),
        ("thread 'main' panicked at src/main.rs:3:5:", ["thread 'main' panicked at src/main.rs:3:5:"]),
        ('Exception in thread "main" java.lang.NullPointerException: x', None),
        ("java.lang.OutOfMemoryError: Java heap space", None),
        ("Observed a panic: 0x12\nObserved a panic: 0x34", ["Observed a panic: 0x12"]),
        ("do not panic: all is well", []),
    ],
)
def test_panics(text: str, panics: list[str] | None) -> None:
    found = Output()
    for line in text.splitlines(keepends=True):
        found.take(line)
    assert found.panics == ([text] if panics is None else panics)


def test_why_it_ended() -> None:
    found = Output()
    for line in TRACEBACK.splitlines(keepends=True):
        found.take(line)
    assert (found.panics, found.last_error) == ([], "ValueError: no")
