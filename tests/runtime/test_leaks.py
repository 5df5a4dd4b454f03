"""What a process holds after many runs: no descriptors, tasks or threads are left, and its memory does not grow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RUNS = 12

PROGRAM = """
import asyncio, contextlib, gc, io, json, os, sys, threading
from kemu.doors.cli.main import main

def resident_kib():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

def held():
    uncollected = len(gc.get_objects())
    gc.collect()
    objects = gc.get_objects()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "tasks": sum(isinstance(each, asyncio.Task) for each in objects),
        "loops": sum(isinstance(each, asyncio.AbstractEventLoop) for each in objects),
        "objects": len(objects),
        "uncollected": uncollected,
        "resident_kib": resident_kib(),
    }

folder, runs = sys.argv[1], int(sys.argv[2])
for number in range(runs):
    with contextlib.redirect_stdout(io.StringIO()):
        code = main(["run", SCENARIO, "--runtime", "sim", "--out", f"{folder}/{number}"])
    assert code == 0
    LEAK
    if number == 0:
        print(json.dumps({"uncollected": len(gc.get_objects())}))
    if number == runs // 2:
        print(json.dumps(held()))
print(json.dumps(held()))
"""


def held(folder: Path, leak: str = "") -> list[dict[str, int]]:
    program = PROGRAM.replace("SCENARIO", '"chaos/machine-crash"').replace("LEAK", leak or "pass")
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), str(RUNS)], capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def has_grown(some: dict[str, int], many: dict[str, int]) -> list[str]:
    grown = [what for what in ("descriptors", "threads", "tasks", "loops") if many[what] > some[what]]
    # Interned strings and caches of templates reach their size in the first runs.
    if many["objects"] > some["objects"] * 1.02 + 500:
        grown.append("objects")
    if many["resident_kib"] > some["resident_kib"] * 1.1 + 4096:
        grown.append("resident_kib")
    return grown


def test_a_process_holds_no_more_after_many_runs_than_after_some(tmp_path: Path) -> None:
    one, some, many = held(tmp_path)
    assert has_grown(some, many) == []
    # What runs leave in cycles does not pile up until somebody collects it.
    assert some["uncollected"] < one["uncollected"] * 1.2


LEAKS = {
    "descriptors": "os.open('/dev/null', os.O_RDONLY)",
    "objects": "globals().setdefault('kept', []).append([[] for _ in range(2000)])",
    "resident_kib": "globals().setdefault('kept', []).append(bytearray(b'x' * (16 << 20)))",
}


def test_what_leaks_is_noticed(tmp_path: Path) -> None:
    _, some, many = held(tmp_path, "; ".join(LEAKS.values()))
    assert sorted(has_grown(some, many)) == sorted(LEAKS)
