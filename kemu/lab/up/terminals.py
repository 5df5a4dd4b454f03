"""What ``kemu up`` says on the terminal: for people, or as JSON for programs."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kemu.lab.up.live_lines import Line
from kemu.lab.up.prints import Printer
from kemu.lab.up.sessions import Up

_STYLES = {"good": "32", "bad": "31"}
"""By tone."""


class Json:
    """For programs."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer

    def up(self, up: Up, took_s: float) -> None:
        self._print(
            "up",
            {
                "url": up.url,
                "kubeconfig": str(up.kubeconfig),
                "run": str(up.folder),
                "nodes": up.nodes,
                "took_s": round(took_s, 3),
            },
        )

    def line(self, line: Line) -> None:
        self._print("event", line.data())

    def verdict(self, verdict: Mapping[str, Any], out: Path) -> None:
        self._print("verdict", verdict)

    def _print(self, what: str, data: Mapping[str, Any]) -> None:
        self._printer.print(json.dumps({"what": what, **data} if what != "event" else {"what": what, "event": data}))


class Text:
    """For people."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def up(self, up: Up, took_s: float) -> None:
        kinds = Counter(name.partition("/")[0] for name in up.actors)
        counts = ", ".join(
            f"{kinds[kind]} {name if kinds[kind] == 1 else f'{name}s'}"
            for kind, name in (("apiserver", "API server"), ("scheduler", "scheduler"), ("controller", "controller"))
            if kinds[kind]
        )
        nodes = f"{up.nodes} node{'s' if up.nodes != 1 else ''}"
        for line in (
            f"up: {nodes}, {counts} at {up.url}, after {took_s:.1f} s",
            "",
            f"  export KUBECONFIG={shlex.quote(str(up.kubeconfig))}",
            "  kubectl get nodes",
            "  kubectl create deployment web --image=nginx --replicas=3",
            *(["  kemu step 10s"] if up.steps else []),
            f"  kubectl get pods -o wide{'' if up.steps else ' --watch'}",
            "",
            f"Ctrl-C ends it. The run folder is {up.folder}.",
            "",
        ):
            self._printer.print(line)

    def line(self, line: Line) -> None:
        why = f"  ({line.why})" if line.why else ""
        what = line.what
        if self._colours and line.tone in _STYLES:
            what = f"\x1b[{_STYLES[line.tone]}m{what}\x1b[0m"
        self._printer.print(f"{line.time_ns / 1e9:9.3f} s  {what}{why}")

    def verdict(self, verdict: Mapping[str, Any], out: Path) -> None:
        folder = shlex.quote(str(out))
        failed = [one for one in (*verdict["checks"], *verdict["expectations"]) if one["holds"] is False]
        for line in (
            "",
            *(f"✗ {one['id']}  {one['detail']}" for one in failed),
            f"up: {verdict['headline']}",
            "",
            f"  kemu story {folder}     what happened",
            f"  kemu report {folder}    the same, on one page for a browser",
        ):
            self._printer.print(line)
