"""A worker process of Ray that has imported what a cell needs before it is one. Run as a script, by a raylet.

Ray keeps a few workers ready; with this they are ready for more. Everything else is Ray's own ``default_worker.py``.
"""

import contextlib
import importlib
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    ours = str(Path(__file__).resolve().parents[4])
    if ours not in sys.path:
        sys.path.append(ours)
    with contextlib.suppress(ImportError):  # the cell will say what is missing
        importlib.import_module("kemu.runtime.host.control")
    import ray

    runpy.run_path(str(Path(ray.__file__).parent / "_private" / "workers" / "default_worker.py"), run_name="__main__")
