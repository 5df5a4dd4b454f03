"""The planted bugs of ``hunts/planted``: whether a hunt finds them, and finds nothing where they are mended.

    python -m tests.hunt.planted                     every bug: the first finding
    python -m tests.hunt.planted --careful           the same programs without the bugs: all plans
    python -m tests.hunt.planted forgetful relist    some of them
    python -m tests.hunt.planted --table FILE …      the rows of docs/hunting.md, from all lines that FILE holds by now
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kemu.errors import KemuError
from kemu.lab.hunt import findings, planning, projects
from kemu.lab.hunt.searches import Hunt

HERE = Path(__file__).parents[2] / "hunts/planted"


@dataclass(frozen=True)
class Bug:
    name: str
    group: str
    """What it takes: an intermediate, stale or unobserved state, an answer, or another order."""
    program: str
    text: str


BUGS = {
    bug.name: bug
    for bug in (
        Bug("forgetful", "intermediate state", "python", "children get random names, which are written down afterwards"),
        Bug("orphans", "stale state", "python", "orphans are those whose owner is not in a list that may be old"),
        Bug("moment", "unobserved state", "python", "cleans up when it sees a deletion timestamp; no finalizer, no owner"),
        Bug("relist", "answers", "python", "after 410 it lists anew, and does not notice what is gone"),
        Bug("early", "intermediate state", "go", "the status says so before it is done"),
        Bug("shrink", "stale state", "go", "deletes pods and claims by the size that its cache knows"),
        Bug("names", "unobserved state", "go", "remembers what it has done by names, not by identities"),
        Bug("impatient", "order", "go", "creates once more what its cache does not show yet"),
        Bug("overwrite", "order", "python", "writes the whole object from its cache, without a version"),
    )
}


@dataclass
class Result:
    """One search."""

    bug: str
    careful: bool
    plans: int
    """How many there are."""
    done: int = 0
    found: list[str] = field(default_factory=list)
    """Of each finding the kind and what goes wrong: it did so twice."""
    once: list[str] = field(default_factory=list)
    """What went wrong, and not again."""
    not_struck: int = 0
    cpu_s: float = 0.0
    """Of kemu and of the controllers, with the reference."""


def search(bug: Bug, *, careful: bool, times: int = 1) -> Result:
    """Until the first finding; with ``careful`` all plans, so many times. Raises KemuError."""
    begun = _cpu_s()
    os.environ["CAREFUL"] = "1" if careful else "0"
    out = Path(tempfile.mkdtemp(prefix=f"planted-{bug.name}-"))
    try:
        hunted = project(bug)
        hunt, steps = Hunt(hunted, out), hunted.steps
        reference = hunt.reference()
        plans = planning.plans(reference.outcomes[0])
        result = Result(bug.name, careful, len(plans))
        for plan in [*plans] * times:
            outcome = hunt.trial(steps, plan)
            result.done += 1
            result.not_struck += not outcome.struck
            symptoms = reference.symptoms(outcome) if outcome.struck else []
            if symptoms:
                shows = findings.shows(hunt, reference, steps, plan, symptoms)
                told = f"{' + '.join(one.what for one in plan)}: {symptoms[0].text} ({'; '.join(map(str, plan))})"
                (result.found if shows else result.once).append(told)
                if shows and not careful:
                    break
    finally:
        shutil.rmtree(out)
    result.cpu_s = round(_cpu_s() - begun, 1)
    return result


def project(bug: Bug) -> projects.Project:
    """Of a bug, with what its program needs built. Raises KemuError where it cannot be."""
    found = projects.load(HERE / f"{bug.name}.yaml")
    return found


def _cpu_s() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def main() -> int:
    parser = argparse.ArgumentParser(description="Searches the planted bugs.")
    parser.add_argument("bugs", nargs="*", choices=[*BUGS, []], metavar="BUG", help="all, unless named")
    parser.add_argument("--careful", action="store_true", help="search the programs without the bugs")
    parser.add_argument("--times", type=int, default=1, help="with --careful: how often each plan is tried")
    parser.add_argument("--results", type=Path, help="a file to which each result is appended, a line of JSON each")
    options = parser.parse_args()
    failed = False
    for name in options.bugs or BUGS:
        try:
            result = search(BUGS[name], careful=options.careful, times=options.times)
        except KemuError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = True
            continue
        failed |= bool(result.found) == options.careful
        which = f"{name}, mended" if options.careful else name
        print(f"{which}: {len(result.found)} found in {result.done} plans of {result.plans}, {result.cpu_s:g} CPU s")
        for told in result.found:
            print(f"  {told}")
        for told in result.once:
            print(f"  once: {told}")
        sys.stdout.flush()
        if options.results:
            with options.results.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
