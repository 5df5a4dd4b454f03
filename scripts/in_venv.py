"""Scripts that need what ``.venv`` has import this first: where kemu is not installed, it makes ``.venv`` and goes on
there.
"""

import importlib.metadata
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")


def go_on() -> None:
    try:
        importlib.metadata.distribution("kemu")
        return
    except importlib.metadata.PackageNotFoundError:
        if os.path.realpath(sys.prefix) == os.path.realpath(VENV):
            raise
    made = subprocess.run([os.path.join(ROOT, "scripts", "setup")], stdout=sys.stderr, check=False)
    if made.returncode:
        sys.exit(made.returncode)
    python = os.path.join(VENV, "bin", "python")
    os.execv(python, [python, *sys.argv])


go_on()
