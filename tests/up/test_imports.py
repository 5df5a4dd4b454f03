"""``kemu up`` imports what it uses: each library more is time in which somebody waits for a cluster."""

from __future__ import annotations

import subprocess
import sys

UNUSED = (
    "altair", "duckdb", "httpx", "kubernetes", "kubernetes_asyncio", "opentelemetry", "pandas", "pyarrow", "pytest",
    "ray", "rich", "scipy", "starlette",
)  # fmt: skip
MODULES = (
    "kemu.doors.cli.commands.clusters.up",
    "kemu.doors.cli.inputs",
    "kemu.lab.up.sessions",
    "kemu.lab.up.clusters",
    "kemu.lab.up.terminals",
    "kemu.runtime.wall.runtime",
    "kemu.emulated.store.server",
    "kemu.emulated.apiserver.server",
    "kemu.emulated.scheduler.scheduler",
    "kemu.emulated.kubelet.kubelet",
)


def test_nothing_else_is_imported() -> None:
    code = f"import sys, {', '.join(MODULES)}; print(sorted(set({UNUSED!r}) & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
