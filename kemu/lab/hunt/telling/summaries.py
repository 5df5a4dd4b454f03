"""What a hunt has come to, for people: ``hunt.md`` beside its findings."""

from __future__ import annotations

from pathlib import Path

from kemu.lab.hunt import coverage, perturbations
from kemu.lab.hunt.projects import Project
from kemu.lab.hunt.searches import Hunt
from kemu.runtime.words import counted

FILE = "hunt.md"
LEGEND = "tried / worth a trial / all points"
_MOST_LINES = 5
"""Of what never came about, on a terminal."""


def write(project: Project, hunt: Hunt, out: Path) -> Path:
    """Returns the file."""
    file = out / FILE
    file.write_text(text(project, hunt))
    return file


def text(project: Project, hunt: Hunt) -> str:
    lines = [f"# {headline(project, hunt)}", ""]
    for finding in hunt.findings:
        place = f"{finding.id}/finding.md"
        lines.append(f"* [{finding.id}]({place}): {finding.symptoms[0].text}. {perturbations.shown(finding.plan)}:")
        lines.append(f"  {finding.often}, in {counted(len(finding.steps), 'step')}")
    if hunt.costs:
        lines += ["", "## Costs", "", "No bugs: it comes right in the end, with more work.", ""]
        for cost, plans in hunt.costs.values():
            lines.append(f"* {cost.text}. {perturbations.shown(plans[0])}{_more(len(plans) - 1)}")
    lines += ["", "## Coverage", "", f"Each cell: {LEGEND}.", ""]
    lines += [f"    {line}".rstrip() for line in coverage.table(hunt.coverage, 120)]
    for title, found in (
        ("Plans that never came about", hunt.coverage.missed),
        ("Plans that no process came to the end of", hunt.coverage.lost),
    ):
        if found:
            lines += ["", f"## {title}", "", *(f"* {perturbations.shown(plan)}: {why}" for plan, why in found)]
    return "\n".join([*lines, ""])


def headline(project: Project, hunt: Hunt) -> str:
    progress = hunt.progress
    number = f"{len(hunt.findings) or 'no'} finding{'s' * (len(hunt.findings) != 1)}"
    never = f", {progress.not_struck} of which never came about" if progress.not_struck else ""
    return f"{project.name}: {number} in {progress.done} of {progress.plans} plans{never}"


def lines(hunt: Hunt, width: int) -> list[str]:
    """The coverage, for a terminal of such a width."""
    found = [f"Covered, {LEGEND} ({hunt.brute_force} without a thought):"]
    found += [f"  {line}".rstrip() for line in coverage.table(hunt.coverage, width - 2)]
    if hunt.costs:
        found.append("Costs: right in the end, with more work than in the reference:")
        shown = [f"{cost.text}: {perturbations.shown(plans[0])}" for cost, plans in hunt.costs.values()]
        found += [f"  {line}" for line in shown[:_MOST_LINES]]
        found += [f"  and {len(shown) - _MOST_LINES} more, in {FILE}"] * (len(shown) > _MOST_LINES)
    for title, plans in (("Never came about:", hunt.coverage.missed), ("Not tried to the end:", hunt.coverage.lost)):
        if plans:
            found.append(title)
            found += [f"  {perturbations.shown(plan)}: {why}" for plan, why in plans[:_MOST_LINES]]
            found += [f"  and {len(plans) - _MOST_LINES} more, in {FILE}"] * (len(plans) > _MOST_LINES)
    return found


def _more(count: int) -> str:
    return f"; and after {count} more plan{'s' * (count > 1)}" if count else ""
