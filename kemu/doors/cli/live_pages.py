"""``--live``: the options, the page that is served during a run, and its end."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from kemu.doors.cli import parsers
from kemu.errors import KemuError

EVERY_S = 0.1
"""So often a page is told how far a search is."""
TOO_FAST_S = 3.0
"""To watch a shorter run one needs ``--pace``."""


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--live", action="store_true", help="serve the page of kemu report during the run, on this machine only"
    )
    parser.add_argument(
        "--live-port", type=parsers.whole_number, default=None, metavar="N", help="with --live: the port; default: any"
    )


def add_pace_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pace",
        type=_pace,
        default=0.0,
        metavar="Nx",
        help="maximum virtual seconds for each real one, such as 1x or 10x, to watch a run (sim)",
    )


def _pace(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)x?", text)
    if match is None or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text}: write it as 1x or 0.5x")
    return float(match[1])


class Explained(Protocol):
    """As :class:`kemu.lab.tell.page.pages.Part`."""

    @property
    def explanation(self) -> Mapping[str, Any] | None: ...

    @property
    def commands(self) -> Sequence[tuple[str, str]]:
        """With what they do."""
        ...

    @property
    def causes(self) -> Mapping[str, Any] | None: ...


class Live:
    """Without ``--live`` it does nothing."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Raises KemuError where the port is in use, ModuleNotFoundError without the extra ``live``."""
        if options.live_port is not None and not options.live:
            raise KemuError("--live-port needs --live: it says where that page is served")
        if options.live_port is not None and options.live_port > 65535:
            raise KemuError(f"--live-port {options.live_port}: ports end at 65535")
        self._page = None
        if options.live:
            # Imported on use, as what follows below: runs that are not watched start without it.
            from kemu.lab.tell.live import processes

            self._page = processes.start(options.live_port or 0)
        self._temporary = contextlib.ExitStack()
        self._told_at = 0.0
        self._findings = 0

    @property
    def is_served(self) -> bool:
        return self._page is not None

    def announce(self, aside: Callable[[Callable[[], object]], object]) -> None:
        """``aside`` prints although a progress bar is shown."""
        page = self._page
        if page is not None:
            aside(lambda: print(f"live: {page.url}", file=sys.stderr, flush=True))

    def scenario(self, name: str, description: str, runs: int) -> None:
        if self._page is not None:
            self._page.scenario(name, " ".join(description.split()), runs)

    @property
    def on_begin(self) -> Callable[[Path, str, int], None] | None:
        """For :class:`kemu.lab.scenario.playing.runner.Options`."""
        page = self._page
        if page is None:
            return None
        return lambda folder, variant, duration_ns: page.begin(folder, variant, duration_ns / 1e9)

    def judged(self, _: object) -> None:
        if self._page is not None:
            self._page.judged()

    def over(self, headline: str, verdict: Mapping[str, Any] | None = None) -> None:
        """``verdict``: of the whole."""
        if self._page is not None:
            self._page.end("over", headline, verdict)

    # --- a search, whose findings are the runs of the page

    def searched(self, status: str, figures: str, lines: Sequence[str], *, now: bool = False) -> None:
        """Report the progress, a few times a second, or ``now``."""
        if self._page is not None and (now or time.monotonic() - self._told_at >= EVERY_S):
            self._told_at = time.monotonic()
            self._page.search(status, figures, lines)

    def found(self, file: Path, name: str, data: Path | None, commands: Sequence[tuple[str, str]]) -> int:
        """A scenario that fails: it is run once more, for the page. Returns which run of the page it is; -1: none."""
        page = self._page
        if page is None:
            return -1
        import tempfile

        from kemu.doors.cli import inputs
        from kemu.lab.scenario.playing import runner
        from kemu.lab.tell.explaining import reports

        folder = Path(self._temporary.enter_context(tempfile.TemporaryDirectory(prefix="kemu-live-")))
        begin = self.on_begin
        assert begin is not None
        options = runner.Options(folder / "run", on_begin=lambda place, _, duration_ns: begin(place, name, duration_ns))
        scenario = inputs.load(str(file), data, {}, quiet=True)
        verdict, _ = runner.run_all(scenario, options, on_result=self.judged)
        page.explained(self._findings, reports.read(file.parent, verdict["digest"]), commands)
        self._findings += 1
        return self._findings - 1

    def interrupted(self, text: str) -> None:
        """Tell the page, which stays in the browsers, that the run was interrupted."""
        if self._page is not None:
            self._page.end("interrupted", text)
            self._page.close()

    def stay(self, explanations: Callable[[], Sequence[Explained]] = tuple, hint: str = "") -> None:
        """In a terminal, until Ctrl-C, with explanations as soon as they are made; elsewhere browsers have a moment to
        take the end."""
        page = self._page
        if page is None:
            return
        try:
            if sys.stdin.isatty():
                print(f"live: {page.url} until Ctrl-C{hint}", file=sys.stderr, flush=True)
                for number, part in enumerate(explanations()):
                    page.explained(number, part.explanation, part.commands, part.causes)
                threading.Event().wait()
        except KeyboardInterrupt:
            print(file=sys.stderr)
        finally:
            self.close()

    def close(self) -> None:
        """Stop the server, whatever happened."""
        if self._page is not None:
            self._page.close()
        self._temporary.close()


def too_fast(verdict: Mapping[str, Any]) -> str:
    """The hint for a run that was too fast to watch."""
    is_quick = verdict["runtime"] == "sim" and verdict["wall_s"] < TOO_FAST_S
    return "; too fast to watch? --pace 1x" if is_quick else ""
