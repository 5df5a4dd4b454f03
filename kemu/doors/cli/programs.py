"""The name of the kemu command."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def name() -> str:
    """The command to call kemu again: its name if the shell finds it, else the current path."""
    called = sys.argv[0]
    if shutil.which("kemu") or Path(called).name != "kemu":
        return "kemu"
    return os.path.relpath(called)
