"""Plays the first hour of newcomers in a terminal, and keeps what they see.

    .venv/bin/python -m tests.screens.sessions                 record all screens
    .venv/bin/python -m tests.screens.sessions sre 80x24       those of one session and size

A session is a page such as ``sre.md``: files in blocks that have a name (```yaml storm.yaml), commands in ``console``
blocks. It is played in an empty folder, in tmux, at each size; after each command the visible screen is kept. Read the
difference before you commit it: each screen is what a newcomer sees.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
SESSIONS = ("sre", "researcher", "plugin-author")
SIZES = ("60x20", "80x24", "200x50")
PATIENCE_S = 300
"""For one command, on a machine that is busy."""

_BLOCK = re.compile(r"^```(\w+)(?: +([\w.-]+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_REAL_TIMES = (
    (re.compile(r"(?<=virtual s in )[0-9.e-]+ s"), "… s"),
    (re.compile(r"(?<=virtual s in)$\n +[0-9.e-]+ s", re.MULTILINE), "\n  … s"),
    (re.compile(r"(timelines?,\s+)[0-9.]+ s"), r"\1… s"),
    (re.compile(r"(?<= in )[0-9.]+s(?= =|$)", re.MULTILINE), "…s"),
)


@dataclass(frozen=True)
class File:
    name: str
    text: str


def steps(session: str) -> Iterator[File | str]:
    """Files to write and commands to type, in their order."""
    for language, name, block in _BLOCK.findall((HERE / f"{session}.md").read_text()):
        if name:
            yield File(name, block)
        elif language == "console":
            yield from (line[2:] for line in block.splitlines() if line.startswith("$ "))


class Terminal:
    """A shell in tmux, in an empty folder."""

    def __init__(self, size: str, folder: Path) -> None:
        self._socket = f"kemu-{uuid.uuid4().hex[:12]}"
        self._folder = folder
        columns, rows = size.split("x")
        environment = {
            # Nothing else: what runs the tests may have set CI, NO_COLOR and the like.
            "HOME": str(folder),
            "TERM": "screen-256color",
            "LC_ALL": "C.UTF-8",
            "PATH": f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PS1": "$ ",
            # tmux tells that the prompt is back, and what the command before it returned.
            "PROMPT_COMMAND": f"echo $? > {folder}/.exit; tmux -L {self._socket} wait-for -S prompt",
        }
        self._tmux(
            "-u", "-f", os.devnull, "new-session", "-d", "-x", columns, "-y", rows, "-c", str(folder),
            "env", "-i", *(f"{name}={value}" for name, value in environment.items()), "bash", "--norc", "--noprofile",
        )  # fmt: skip
        self._tmux("wait-for", "prompt")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server")

    def type(self, command: str) -> str:
        """The screen when the command has ended, below the command and its exit code."""
        self._tmux("send-keys", "C-l")
        self._tmux("clear-history")
        self._tmux("send-keys", "-l", command)
        self._tmux("send-keys", "Enter")
        self._tmux("wait-for", "prompt")
        code = (self._folder / ".exit").read_text().strip()
        screen = self._tmux("capture-pane", "-p").rstrip().removesuffix("$").rstrip()
        for pattern, text in _REAL_TIMES:
            screen = pattern.sub(text, screen)
        return f"▌{command}  → exit {code}\n" + screen.replace(str(self._folder), "FOLDER") + "\n"

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *arguments],
            capture_output=True, text=True, check=True, timeout=PATIENCE_S, cwd=self._folder,
            env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"},
        )  # fmt: skip
        return done.stdout


def play(session: str, size: str) -> str:
    """All screens of a session."""
    screens = []
    with (
        tempfile.TemporaryDirectory(prefix="kemu-", ignore_cleanup_errors=True) as folder,
        Terminal(size, Path(folder)) as terminal,
    ):
        for step in steps(session):
            if isinstance(step, File):
                (Path(folder) / step.name).write_text(step.text)
            else:
                screens.append(terminal.type(step))
    return "\n".join(screens)


def golden(session: str, size: str) -> Path:
    return GOLDEN / f"{session}-{size}.txt"


def main(arguments: list[str]) -> int:
    if shutil.which("tmux") is None:
        print("tmux is missing: apt-get install tmux", file=sys.stderr)
        return 2
    GOLDEN.mkdir(exist_ok=True)
    for session in SESSIONS:
        for size in SIZES:
            if all(word in (session, size) for word in arguments):
                golden(session, size).write_text(play(session, size))
                print(f"{golden(session, size).relative_to(ROOT)} recorded", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
