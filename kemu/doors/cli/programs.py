"""How the user calls kemu."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def name() -> str:
    """The command for the user to call kemu again: its name if the shell finds it, else the present one."""
    called = sys.argv[0]
    if shutil.which("kemu") or Path(called).name != "kemu":
        return "kemu"
    return os.path.relpath(called)
