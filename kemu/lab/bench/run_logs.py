"""What commands cost that read the log of a long run: the trace of one pod with and without the index, the story."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from kemu.lab.bench.clusters import throughput as pods_to_run
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.runtime.runlog.folders import INDEX_FILE
from kemu.runtime.runlog.frames import FILE_NAME


def trace(nodes: int, pods: int) -> dict[str, Any]:
    """Seconds of a command from its start to its end, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="kemu-bench-") as folder:
        scenario = Path(folder) / "bench.yaml"
        scenario.write_text(pods_to_run.scenario_text(nodes, pods))
        run = Path(folder) / "run"
        result = runner.run(loader.load(scenario), runner.Options(out=run, runtime="sim"))
        index = run / INDEX_FILE
        figures = {
            "log_mib": round((run / FILE_NAME).stat().st_size / (1 << 20), 3),
            "index_mib": round(index.stat().st_size / (1 << 20), 3),
            "run_s": result.verdict["wall_s"],
        }
        del result
        last = f"pods-0-{pods - 1}"
        figures["trace_s"] = min(_seconds("trace", str(run), last) for _ in range(3))
        index.unlink()
        figures["trace_without_index_s"] = _seconds("trace", str(run), last)
        figures["story_s"] = min(_seconds("story", str(run)) for _ in range(2))
        return figures


def _seconds(*words: str) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-m", "kemu.doors.cli.main", *words], check=True, stdout=subprocess.DEVNULL)
    return round(time.perf_counter() - begun, 3)
