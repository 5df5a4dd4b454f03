"""A sweep that is killed again and again, compared with the same on Ray: ``python -m tests.sweep.kills``.

Runs ``experiments/starvation.yaml``, whose process gets SIGKILL after so many cells as are drawn, until it is over;
looks whether each cell is in the journal once; and runs it on a local Ray cluster, which must leave the same bytes.
1,000 cells take 15 minutes of two cores, twice.
"""

from __future__ import annotations

import argparse
import collections
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kemu.lab.sweep.experiments import loader
from kemu.lab.sweep.results import journals
from kemu.runtime.runlog import folders

FILE = Path(__file__).parents[2] / "experiments" / "starvation.yaml"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=0, help="fewer than the experiment has")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1, help="of the times of the kills")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        file = Path(made) / "starvation.yaml"
        text = FILE.read_text()
        file.write_text(text.replace("seeds: 100", f"seeds: {options.seeds}") if options.seeds else text)
        experiment = loader.load(file)
        here, on_ray = Path(made) / "here", Path(made) / "ray"
        draws = random.Random(options.seed)
        begun_s = time.monotonic()
        for number in range(options.kills):
            _kill_after(_sweep(file, here), here, round(experiment.size * draws.uniform(0.2, 0.8) / options.kills))
            print(f"kill {number + 1}: {len(_cells(here))} of {experiment.size} cells", flush=True)
        _sweep(file, here).wait()
        cells = collections.Counter(_cells(here))
        assert len(cells) == experiment.size, "a cell is lost"
        assert set(cells.values()) == {1}, "a cell is doubled"
        print(f"{experiment.size} cells, each once, in {time.monotonic() - begun_s:.0f} s", flush=True)
        begun_s = time.monotonic()
        _sweep(file, on_ray, "--ray").wait()
        print(f"on Ray in {time.monotonic() - begun_s:.0f} s", flush=True)
        same = (here / folders.TABLES_FILE).read_bytes() == (on_ray / folders.TABLES_FILE).read_bytes()
        print("the same bytes" if same else "other bytes")
        return 0 if same else 1


def _sweep(file: Path, out: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "kemu.doors.cli.main", "sweep", str(file), "--out", str(out), *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _kill_after(process: subprocess.Popen[bytes], folder: Path, cells: int) -> None:
    """When so many more cells are done."""
    before = len(_cells(folder))
    while process.poll() is None and len(_cells(folder)) < before + cells:
        time.sleep(0.5)
    process.kill()
    process.wait()


def _cells(folder: Path) -> list[tuple[int, int]]:
    """All that stand in the journal, in whichever state it is."""
    return journals.keys_in(folder)


if __name__ == "__main__":
    sys.exit(main())
