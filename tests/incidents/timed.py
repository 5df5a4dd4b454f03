"""How long a dump takes to become a page: ``python -m tests.incidents.timed [TIMES]``, six nodes each (54 in all)."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from kemu.doors.cli.main import main
from tests.incidents import printed


def timed(times: int) -> None:
    cluster = printed.leak(times)
    with tempfile.TemporaryDirectory(prefix="kemu-timed-") as place:
        folder = Path(place)
        (folder / "dump.yaml").write_text(printed.printed(printed.objects(cluster)))
        (folder / "memory.json").write_text(printed.prometheus(cluster))
        dump = [str(folder / name) for name in ("dump.yaml", "memory.json")]
        for words in (
            ["import", *dump, "--out", str(folder / "incident")],
            ["run", str(folder / "incident"), "--out", str(folder / "run"), "--json"],
            ["report", str(folder / "run")],
        ):
            begin, used = time.monotonic(), _used()
            assert main(words) == 0, words
            print(f"{words[0]}: {time.monotonic() - begin:.1f} s, {_used() - used:.1f} s of CPU", file=sys.stderr)


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    timed(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
