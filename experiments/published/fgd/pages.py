"""The tables: kemu's figures beside the published ones, on the terminal and in docs/published-fgd.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.published.fgd import inputs, results
from experiments.published.fgd.results import Result

PAGE = Path(__file__).resolve().parents[3] / "docs" / "published-fgd.md"

_MARKS = ("<!-- made by python -m experiments.published.fgd -->", "<!-- end -->")


def line(one: Result) -> str:
    """Of one run, for the terminal."""
    figures = "  ".join(
        f"{own:7.2f} published {published:7.2f} {distance:+.4f}"
        for own, published, distance in zip(one.own, one.published, results.distances(one), strict=True)
    )
    return f"{one.workload:11} {one.policy:16} {one.seed}  {figures}  {one.failed} failed, {one.cpu_s:.0f} s of CPU"


def summary(found: Sequence[Result]) -> list[str]:
    """A Markdown table: the means over the seeds, and the largest distance of a single run."""
    lines = [
        "| workload | policy | seeds | " + " | ".join(f"{name}: kemu, published" for name in results.FIGURES)
        + " | largest distance of a run | CPU seconds of a run |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for workload, policy, chosen in _by_policy(found):
        cells = []
        for place in range(len(results.FIGURES)):
            own = results.mean([one.own[place] for one in chosen])
            published = results.mean([one.published[place] for one in chosen])
            cells.append(f"{own:.2f}, {published:.2f} ({own - published:+.2f})")
        furthest = max(abs(distance) for one in chosen for distance in results.distances(one))
        times = [one.cpu_s for one in chosen]
        cells += ["other draws" if policy == results.RANDOM else f"{furthest:.4f}"]
        cells += [f"{min(times):.0f} to {max(times):.0f}"]
        lines.append(f"| {workload} | {policy} | {len(chosen)} | " + " | ".join(cells) + " |")
    return lines


def runs_table(found: Sequence[Result]) -> list[str]:
    """Each run: kemu's figure, and its distance from the published one."""
    lines = [
        "| policy | seed | " + " | ".join(results.FIGURES) + " | fitted nowhere | the first of them |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in found:
        cells = [f"{own:.2f} ({distance:+.2f})" for own, distance in zip(one.own, results.distances(one), strict=True)]
        cells += [f"{one.failed:,}", f"{one.first_failed:,}"]
        lines.append(f"| {one.policy} | {one.seed} | " + " | ".join(cells) + " |")
    return lines


def write(found: Sequence[Result]) -> None:
    PAGE.write_text(_page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


def complaints() -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    if text == _page(text, results.read()):
        return []
    return [f"{PAGE.name} does not say what {results.FILE.name} says: python -m experiments.published.fgd writes it"]


def _page(text: str, found: Sequence[Result]) -> str:
    """The page with its tables made anew."""
    parts = text.split(_MARKS[0])
    rest = [part.split(_MARKS[1], 1)[1] for part in parts[1:]]
    default = [one for one in found if one.workload == inputs.DEFAULT]
    others = [one for one in found if one.workload != inputs.DEFAULT]
    tables = [summary(default), summary(others), runs_table(default)]
    made = parts[0]
    for table, after in zip(tables, rest, strict=True):
        made += "\n".join([_MARKS[0], *table, _MARKS[1]]) + after
    return made


def _by_policy(found: Sequence[Result]) -> Iterator[tuple[str, str, list[Result]]]:
    for run in dict.fromkeys((one.workload, one.policy) for one in found):
        yield *run, [one for one in found if (one.workload, one.policy) == run]
