"""``kemu up`` imports what it uses: each library more is time in which somebody waits for a cluster."""

from __future__ import annotations

import subprocess
import sys

UNUSED = (
    "altair", "duckdb", "httpx", "kubernetes", "kubernetes_asyncio", "opentelemetry", "pandas", "pyarrow", "pytest",
    "ray", "rich", "scipy", "starlette",
)  # fmt: skip
MODULES = (
    "kemu.cli.commands.clusters.up", "kemu.cli.inputs", "kemu.up.sessions", "kemu.up.clusters", "kemu.up.terminals",
    "kemu.runtime.wall.runtime", "kemu.store.server", "kemu.apiserver.server", "kemu.scheduler.scheduler",
    "kemu.kubelet.kubelet",
)  # fmt: skip


def test_nothing_else_is_imported() -> None:
    code = f"import sys, {', '.join(MODULES)}; print(sorted(set({UNUSED!r}) & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"
