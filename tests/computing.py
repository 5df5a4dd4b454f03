"""Which test files only compute: ``python -m tests.computing FILE…`` names them, a line each.

They wait for nothing but a core, so ``scripts/test`` runs them at a low priority beside those that wait for
processes and real time, which use half of a machine and have their limits.

A file only computes where neither it, nor what it imports of the tests, nor a conftest.py above it imports a module
that waits, and none of its tests runs on an event loop of Python's or on Ray. A process that it starts by other means
is at a low priority, too, and only takes longer.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WAITING = re.compile(
    r"""^\s*(?:import|from)\ (?:
          aiohttp|asyncio|concurrent|grpc|httpx|multiprocessing|playwright|pty|ray|resource|signal|socket|subprocess
          |threading|tracemalloc|uvicorn
          |kemu\.doors\.cli|kemu\.emulated\.(?:bridge|gateway\.servers|real)
          |kemu\.lab\.(?:bench|exploration\.(?:campaigns|processes|shrinking|workers)|fuzz|hunt|tell\.(?:causes|live)|up)
          |kemu\.runtime\.(?:host|ray|wall)
        )\b
        |\basync\ def\ test_|\blocal_ray\b|\bmark\.(?:ray|timeout)\b|\bpytester\b""",
    re.MULTILINE | re.VERBOSE,
)
TIMED = re.compile(r"^\s*(?:import|from) time\b", re.MULTILINE)
"""A test that looks at a clock has a limit; a script beside tests says how long it took."""
_IMPORTED = re.compile(r"^\s*(?:from (tests[\w.]*) import (\([^)]*\)|.*)|import (tests[\w.]+))", re.MULTILINE)


class Files:
    """The modules of the tests, each read once."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self._waiting: dict[Path, bool] = {}

    def computes(self, path: str) -> bool:
        """The path of a test file, below the root."""
        file = self.root / path
        above = (folder / "conftest.py" for folder in file.parents if self.root / "tests" in folder.parents)
        return not TIMED.search(file.read_text()) and not any(map(self._waits, (file, *above)))

    def _waits(self, file: Path) -> bool:
        if file not in self._waiting:
            self._waiting[file] = False  # of those that import each other, the others say
            text = file.read_text() if file.is_file() else ""
            self._waiting[file] = bool(WAITING.search(text)) or any(map(self._waits, self._imported(text)))
        return self._waiting[file]

    def _imported(self, text: str) -> Iterator[Path]:
        for package, names, module in _IMPORTED.findall(text):
            for name in (module, package, *(f"{package}.{one}" for one in re.findall(r"\w+", names))):
                path = self.root.joinpath(*name.split("."))
                yield path / "__init__.py"
                yield path.with_suffix(".py")


def computing(paths: Iterable[str]) -> list[str]:
    files = Files()
    return [path for path in paths if files.computes(path)]


if __name__ == "__main__":
    print(*computing(sys.argv[1:]), sep="\n")
