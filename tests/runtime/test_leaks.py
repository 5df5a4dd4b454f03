"""What a process holds after many runs: no descriptors, tasks or threads are left, and its memory does not grow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RUNS = 12

PROGRAM = """
import asyncio, contextlib, gc, io, json, os, sys, threading
from kemu.cli.main import main

def resident_kib():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

def held():
    gc.collect()
    objects = gc.get_objects()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "tasks": sum(isinstance(each, asyncio.Task) for each in objects),
        "loops": sum(isinstance(each, asyncio.AbstractEventLoop) for each in objects),
        "objects": len(objects),
        "resident_kib": resident_kib(),
    }

folder, runs = sys.argv[1], int(sys.argv[2])
for number in range(runs):
    with contextlib.redirect_stdout(io.StringIO()):
        main(["run", "chaos/machine-crash", "--runtime", "sim", "--out", f"{folder}/{number}"])
    if number == runs // 2:
        print(json.dumps(held()))
print(json.dumps(held()))
"""


def test_a_process_holds_no_more_after_many_runs_than_after_some(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(RUNS)], capture_output=True, text=True, check=True
    )
    some, many = (json.loads(line) for line in done.stdout.splitlines())
    for what in ("descriptors", "threads", "tasks", "loops"):
        assert many[what] <= some[what], what
    # Interned strings and caches of templates reach their size in the first runs.
    assert many["objects"] < some["objects"] * 1.02 + 500
    assert many["resident_kib"] < some["resident_kib"] * 1.1 + 4096
