"""What ``kemu explore`` shows: how far it is, and what it has found."""

from __future__ import annotations

import shlex
import sys
import textwrap
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self, TextIO

from kemu.exploration.searches import Finding, Search

EVERY_S = 0.2
PLAIN_EVERY_S = 10.0
"""Where nobody can rewrite lines: in a log of CI."""
WIDTH = 100


class Progress:
    """Runs a second, what is new, failures by cluster, goals that no run has reached."""

    def __init__(self, search: Search, stream: TextIO, *, quiet: bool) -> None:
        self._search = search
        self._stream = stream
        self._quiet = quiet
        self._live: Any = None
        self._began_s = self._shown_s = time.monotonic()
        self._clusters = 0

    def __enter__(self) -> Self:
        if not self._quiet and self._stream.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=self._stream), refresh_per_second=1 / EVERY_S, transient=True)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def take(self, record: Any) -> None:
        """A run is over."""
        if self._quiet:
            return
        now_s = time.monotonic()
        campaign = self._search.campaign
        if self._live is not None:
            if now_s - self._shown_s >= EVERY_S:
                self._shown_s = now_s
                self._live.update("\n".join([self._line(now_s), *self._details()]))
            return
        clusters = list(campaign.clusters)
        for cluster in clusters[self._clusters :]:
            self._print(f"run {cluster.first.number} ({cluster.first.strategy}): {_short(cluster.failure)}")
        self._clusters = len(clusters)
        if now_s - self._shown_s >= PLAIN_EVERY_S:
            self._shown_s = now_s
            self._print(self._line(now_s))

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
        lines = [f"  {len(cluster.runs):5} runs  {_short(cluster.failure)}" for cluster in clusters[:8]]
        return lines + [f"  and {len(clusters) - 8} more"] * (len(clusters) > 8)


def _short(failure: Any) -> str:
    return textwrap.shorten(f"{failure.id}: {failure.detail}", WIDTH, placeholder=" …")


def show(search: Search, findings: Iterable[Finding], kemu: str) -> None:
    """The result, with each finding as soon as it is known."""
    campaign = search.campaign
    anyway = search.fails_anyway()
    if anyway:
        print(
            f"{search.scenario.name} fails as it is, so there is nothing to search for: pass --check for other checks"
        )
    else:
        print(_summary(search))
    clusters = search.clusters()
    shown = 0
    for finding in findings:
        shown += 1
        print()
        _show_finding(finding, kemu, "" if anyway else f" of {len(campaign.records)}", shown)
    for cluster in clusters[shown:]:
        print(f"\n{cluster.id}: {len(cluster.runs)} runs, first {cluster.first.number}: {_short(cluster.failure)}")
    sys.stdout.flush()


def _summary(search: Search) -> str:
    campaign = search.campaign
    count = len(campaign.records)
    found = len(campaign.clusters)
    speed = f"{count} runs in {campaign.seconds:.0f} s, {len(campaign.coverage.timelines)} different timelines"
    lines = [f"{search.scenario.name}: {speed}, {found or 'no'} way{'s' * (found != 1)} to fail"]
    width = max(map(len, campaign.strategy_data()))
    for name, data in campaign.strategy_data().items():
        first = data["median_runs_to_first"]
        after = f", a new way after {first:g} runs (median)" if first is not None else ""
        lines.append(f"  {name:{width}}  {data['runs']:5} runs, {data['found']:5} failed{after}")
    unfinished = sum(record.verdict in ("slow", "died") for record in campaign.records)
    if unfinished:
        lines.append(f"  {unfinished} runs did not end")
    if campaign.canary is False:
        lines.append("  the canary lives: runs that must fail did not, so nothing here means anything")
    lines += [f"  never: {goal.what} {goal.id}" for goal in campaign.unseen()]
    return "\n".join(lines)


def _show_finding(finding: Finding, kemu: str, of_all: str, number: int) -> None:
    cluster, record = finding.cluster, finding.cluster.first
    runs = len(cluster.runs)
    first = f"first run {record.number} ({record.strategy})"
    print(f"{number}. {cluster.check}: {runs} run{'s' * (runs != 1)}{of_all}, {first}")
    failure = finding.shrunk.failure if finding.shrunk is not None else cluster.failure
    print(textwrap.fill(failure.detail, WIDTH, initial_indent="   ", subsequent_indent="   "))
    if not finding.is_verified:
        print(f"   It does not fail again: a bug of kemu. The plan is in {finding.file}")
        return
    if finding.explanation is not None:
        print("   because")
        for sentence in finding.explanation.chain.sentences:
            print(textwrap.fill(sentence.text, WIDTH, initial_indent="   - ", subsequent_indent="     "))
    print(f"   {_size(finding)}")
    file = shlex.quote(str(finding.file))
    print(f"   {kemu} run {file}")
    if finding.explanation is not None:
        print(f"   {kemu} explain {file}")


def _size(finding: Finding) -> str:
    shrunk = finding.shrunk
    if shrunk is None:
        return f"as it was found, with {len(finding.cluster.first.holds)} holds:"
    parts = [
        f"{count} {name if count != 1 else name[:-1]}"
        for name, count in shrunk.counts().items()
        if count and name not in ("executions", "events")
    ]
    least = "nothing of it can go" if shrunk.minimal else f"perhaps not the least: {shrunk.why_not}"
    return f"{', '.join(parts)} ({shrunk.executions} executions; {least}):"
