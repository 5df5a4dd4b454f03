"""Memory in large pages: what lives is moved there once, and never what two processes share."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from kemu.runtime import garbage

def large_kib():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("AnonHugePages"))

held = [str(number) for number in range(1_000_000)]
print(large_kib())
if "fork" in sys.argv:
    child = os.fork()
    if child == 0:
        garbage.use_large_pages()
        print(large_kib(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
garbage.use_large_pages()
print(large_kib(), flush=True)
"""


def _large_kib(*arguments: str) -> list[int]:
    done = subprocess.run([sys.executable, "-u", "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has them")
def test_memory_moves_to_large_pages() -> None:
    before, after = _large_kib()
    if after == before:
        pytest.skip("this kernel does not move pages on demand")
    assert after - before > 32 * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has them")
def test_neither_parent_nor_child_copies_what_they_share() -> None:
    before, child, parent = _large_kib("fork")
    assert child == parent == before
