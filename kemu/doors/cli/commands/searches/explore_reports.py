"""The output of ``kemu explore``: progress and findings."""

from __future__ import annotations

import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from kemu.doors.cli import finds, live_pages, pipes, programs
from kemu.lab.exploration.searches import Finding, Search
from kemu.lab.exploration.shrinking.shrinker import Shrunk
from kemu.runtime.runlog import folders
from kemu.runtime.words import counted, harmless

if TYPE_CHECKING:
    from kemu.lab.exploration.executions import Failure
    from kemu.lab.exploration.results import RunRecord

EVERY_S = 0.2
PLAIN_EVERY_S = 10.0
"""Where lines cannot be rewritten: in a log of CI."""
WIDTH = 100
LEAST_WIDTH = 40


class Progress:
    """Runs per second, new coverage, failures by cluster, goals that no run has reached."""

    def __init__(self, search: Search, stream: TextIO, page: live_pages.Live, *, quiet: bool) -> None:
        """``page``: is told it as well."""
        self._search = search
        self._page = page
        self._shown: dict[str, tuple[Path, int]] = {}
        """By cluster: its scenario, and which run of the page it is."""
        self._stream = stream
        self._quiet = quiet
        self._live: Any = None
        self._began_s = self._shown_s = time.monotonic()
        self._clusters = 0

    def __enter__(self) -> Self:
        if not self._quiet and self._stream.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(file=pipes.moving(self._stream)), refresh_per_second=1 / EVERY_S, transient=True
            )
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def take(self, record: RunRecord) -> None:
        """Count a finished run."""
        self.tell("The search goes on.")
        if self._quiet:
            return
        from rich.text import Text

        now_s = time.monotonic()
        campaign = self._search.campaign
        if self._live is not None:
            if now_s - self._shown_s >= EVERY_S:
                self._shown_s = now_s
                shown = harmless("\n".join([self._line(now_s), *self._details()]))
                self._live.update(Text(shown, no_wrap=True, overflow="ellipsis"))
            return
        clusters = list(campaign.clusters)
        for cluster in clusters[self._clusters :]:
            self._print(f"run {cluster.first.number} ({cluster.first.strategy}): {_short(cluster.failure)}")
        self._clusters = len(clusters)
        if now_s - self._shown_s >= PLAIN_EVERY_S:
            self._shown_s = now_s
            self._print(self._line(now_s))

    def tell(self, status: str, *, now: bool = False) -> None:
        """Tell the page."""
        figures = self._line(time.monotonic()).partition(": ")[2]
        self._page.searched(status, figures.replace(", ", " · "), self._details(), now=now)

    def findings(self, found: Iterable[Finding], data: Path | None) -> Iterator[Finding]:
        """The same; the page shows each of them as a run. ``data``: where the files of a trace are."""
        self.tell("What was found is made as small as it gets.", now=True)
        for finding in found:
            if finding.is_verified:
                kemu, file = programs.name(), shlex.quote(str(finding.file))
                commands = [
                    (f"{kemu} run {file}", "fails by itself"),
                    (f"{kemu} explain {file}", "why, in the terminal"),
                ]
                run = self._page.found(finding.file, finding.cluster.check, data, commands)
                self._shown[finding.cluster.id] = (finding.file, run)
            yield finding

    def over(self, data: Path | None) -> None:
        """Tell the page the result."""
        if not self._page.is_served:
            return
        search = self._search
        if not self._shown:
            self._page.found(search.options.out / folders.SCENARIO_FILE, "", data, ())
        rows = [finds.row(one, *self._shown.get(one.id, (Path(), -1))) for one in search.clusters()]
        strategies = [
            {"name": name, "runs": found["runs"], "failed": found["found"]}
            for name, found in search.campaign.strategy_data().items()
        ]
        told = headline(search)
        table = {"headline": told, "finds": rows, "strategies": strategies}
        self._page.over(told, {"headline": told, "search": table})

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)

    def _line(self, now_s: float) -> str:
        campaign = self._search.campaign
        count = len(campaign.records)
        runs = f"{count} of {campaign.settings.runs} runs" if campaign.settings.runs else f"{count} runs"
        elapsed_s = now_s - self._began_s
        words = [runs, f"{count / max(elapsed_s, 1e-9):.0f}/s", f"{len(campaign.coverage.timelines)} timelines"]
        unseen = campaign.unseen()
        if unseen:
            words.append(f"never yet: {', '.join(goal.id for goal in unseen[:3])}{', …' if len(unseen) > 3 else ''}")
        return f"{self._search.scenario.name}: {', '.join(words)}"

    def _details(self) -> list[str]:
        clusters = list(self._search.campaign.clusters)
        lines = [
            f"  {len(cluster.runs):5} {'run ' if len(cluster.runs) == 1 else 'runs'}  {_short(cluster.failure)}"
            for cluster in clusters[:8]
        ]
        return lines + [f"  and {len(clusters) - 8} more"] * (len(clusters) > 8)


def _short(failure: Failure) -> str:
    return textwrap.shorten(f"{failure.id}: {failure.detail}", WIDTH, placeholder=" …")


def show(search: Search, findings: Iterable[Finding], kemu: str) -> None:
    """Print progress, each finding as soon as it is known, and the final result."""
    width = min(max(shutil.get_terminal_size().columns, LEAST_WIDTH), WIDTH)
    campaign = search.campaign
    anyway = search.fails_anyway()
    if not anyway:
        print(_strategies(search))
    clusters = search.clusters()
    shown = 0
    for finding in findings:
        shown += 1
        print()
        _show_finding(finding, kemu, "" if anyway else f" of {len(campaign.records)}", shown, width)
    for cluster in clusters[shown:]:
        told = f"{cluster.id}: {counted(len(cluster.runs), 'run')}, first {cluster.first.number}: "
        print(f"\n{_wrapped(f'{told}{_short(cluster.failure)}', '', '  ', width)}")
    print()
    print(_wrapped(headline(search), "", "  ", width))
    sys.stdout.flush()


def _wrapped(text: str, first: str, later: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def headline(search: Search) -> str:
    """The last line: the result."""
    campaign, name, clusters = search.campaign, search.scenario.name, len(search.clusters())
    if search.fails_anyway():
        return f"{name} fails as it is, so there is nothing to search for: pass --check for other checks"
    timelines = counted(len(campaign.coverage.timelines), "different timeline")
    done = f"{counted(len(campaign.records), 'run')} ({timelines}, {campaign.seconds:.0f} s)"
    if clusters:
        return f"{name} fails: {counted(clusters, 'way')} to fail in {done}"
    if campaign.canary is False:
        return f"{name} unknown: the canary lives: runs that must fail did not, so the {done} mean nothing"
    unseen = len(campaign.unseen())
    but = f"; {counted(unseen, 'thing')} that had to happen never did" if unseen else ""
    return f"{name}: no way to fail found in {done}{but}"


def _strategies(search: Search) -> str:
    """What each strategy has tried, and what was never seen."""
    campaign = search.campaign
    lines = []
    width = max(map(len, campaign.strategy_data()))
    for name, data in campaign.strategy_data().items():
        first = data["median_runs_to_first"]
        after = f", a new way after {first:g} run{'' if first == 1 else 's'} (median)" if first is not None else ""
        runs = f"{data['runs']:5} {'run, ' if data['runs'] == 1 else 'runs,'}"
        lines.append(f"  {name:{width}}  {runs} {data['found']:5} failed{after}")
    unfinished = sum(record.verdict in ("slow", "died") for record in campaign.records)
    if unfinished:
        lines.append(f"  {counted(unfinished, 'run')} did not end")
    lines += [f"  never: {goal.what} {goal.id}" for goal in campaign.unseen()]
    return "\n".join(lines)


def _show_finding(finding: Finding, kemu: str, of_all: str, number: int, width: int) -> None:
    cluster, record = finding.cluster, finding.cluster.first
    first = f"first run {record.number} ({record.strategy})"
    print(
        _wrapped(f"{number}. {cluster.check}: {counted(len(cluster.runs), 'run')}{of_all}, {first}", "", "   ", width)
    )
    failure = finding.shrunk.failure if finding.shrunk is not None else cluster.failure
    print(_wrapped(failure.detail, "   ", "   ", width))
    if not finding.is_verified:
        print(_wrapped(f"It does not fail again: a bug of kemu. The plan is in {finding.file}", "   ", "   ", width))
        return
    if finding.because is not None:
        print("   because")
        for sentence in finding.because:
            print(_wrapped(sentence, "   - ", "     ", width))
    print(_wrapped(_size(finding), "   ", "   ", width))
    # Commands stand on lines of their own, to be copied whole.
    file = shlex.quote(str(finding.file))
    print(f"   {kemu} run {file}")
    if finding.because is not None:
        print(f"   {kemu} explain {file}")
    if finding.shrunk is not None and not finding.shrunk.minimal:
        print(f"   {kemu} shrink {shlex.quote(str(finding.file.parent))}")


def _size(finding: Finding) -> str:
    shrunk = finding.shrunk
    if shrunk is None:
        return f"as it was found, with {len(finding.cluster.first.holds)} holds:"
    return f"{size(shrunk)}:"


def size(shrunk: Shrunk) -> str:
    """The size after shrinking, and why it is not smaller."""
    parts = [
        f"{count} {name if count != 1 else name[:-1]}"
        for name, count in shrunk.counts().items()
        if count and name not in ("executions", "events")
    ]
    least = "nothing of it can go" if shrunk.minimal else f"perhaps not the least: {shrunk.why_not}"
    return f"{', '.join(parts)} ({shrunk.executions} executions; {least})"
