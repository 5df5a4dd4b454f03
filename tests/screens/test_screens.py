"""What newcomers see in a terminal is what was read by a person and kept in ``golden``."""

from __future__ import annotations

import difflib
import os
import shutil

import pytest

from tests.screens import sessions

PLAYED = [
    (session, size)
    for i, session in enumerate(sessions.SESSIONS)
    for j, size in enumerate(sessions.SIZES)
    if i == j or "KEMU_NIGHTLY" in os.environ
]
"""Each session and each size once; the nightly plays every session at every size."""

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is missing: apt-get install tmux")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("session", "size"), PLAYED)
def test_screens(session: str, size: str) -> None:
    kept = sessions.golden(session, size).read_text()
    seen = sessions.play(session, size)
    difference = difflib.unified_diff(kept.splitlines(), seen.splitlines(), "kept", "seen", lineterm="", n=4)
    told = "\n".join([*difference][:120])
    again = f".venv/bin/python -m tests.screens.sessions {session} {size}"
    assert seen == kept, f"{told}\n\nif this is meant: {again}, and read the difference"
