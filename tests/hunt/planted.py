"""The planted bugs of ``hunts/planted``: whether a hunt finds them, and finds nothing where they are mended.

python -m tests.hunt.planted                     every bug: the first finding
python -m tests.hunt.planted --careful           the same programs without the bugs: all plans
python -m tests.hunt.planted --careful --times 10  ten times as many plans as it took to find the bug
python -m tests.hunt.planted forgetful relist    some of them
python -m tests.hunt.planted --known             one plan each, which is known to show it
python -m tests.hunt.planted --results FILE      adds a line of JSON for each search
python -m tests.hunt.planted --results FILE --resume  passes over those that went as they should

Exit codes: 0 as it should be, 1 not, 77 nothing wrong, but some programs could not be built.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import yaml

from kemu.errors import KemuError
from kemu.lab.hunt import findings, perturbations, planning, projects
from kemu.lab.hunt.judging import oracles
from kemu.lab.hunt.judging.oracles import Reference
from kemu.lab.hunt.projects import Step
from kemu.lab.hunt.searches import Hunt

BUILD_S = 900.0
NOT_ALL = 77
"""The exit code that a night takes for skipped."""
RESULTS = Path(__file__).with_name("planted.jsonl")
"""What the table of docs/hunting.md was made from."""
_LANGUAGES = {"python": "Python", "kopf": "Python, kopf", "go": "Go, controller-runtime", "java": "Java, fabric8"}
ROOT = Path(__file__).parents[2]
HERE = ROOT / "hunts/planted"


class Missing(KemuError):
    """A program cannot be built here."""


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
        Bug(
            "forgetful",
            "intermediate state",
            "python",
            "pods get random names, written down after all are there",
        ),
        Bug(
            "adopted",
            "intermediate state",
            "kopf",
            "`kopf.adopt` names its pods; a handler that is interrupted begins anew",
        ),
        Bug("early", "intermediate state", "go", "the status says that it is done before it is"),
        Bug("orphans", "stale state", "python", "at its start it removes secrets of crews that are not in its list"),
        Bug("shrink", "stale state", "go", "deletes pods and claims by the size that its cache knows"),
        Bug(
            "moment",
            "unobserved state",
            "python",
            "cleans up when it sees a crew going; no finalizer, no owner reference",
        ),
        Bug("names", "unobserved state", "go", "remembers what it has done by names, not by identities"),
        Bug("relist", "answers", "python", "after 410 it lists anew, and does not notice what is gone"),
        Bug(
            "events",
            "answers",
            "kopf",
            "makes a pod anew when it is told that one has gone, and looks at no other time",
        ),
        Bug("resigned", "answers", "java", "gives up when an update meets a conflict"),
        Bug("overwrite", "order", "python", "writes the whole object as its cache has it, without a version"),
        Bug("impatient", "order", "go", "creates once more what its cache does not show yet"),
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


def search(bug: Bug, *, careful: bool, times: int = 0, limit_s: float = math.inf, results: Path = RESULTS) -> Result:
    """Until the first finding; with ``careful`` all plans, or ``times`` as many as found the bug, says ``results``,
    from the beginning again where these are more. No plan begins after so much real time. Raises KemuError."""
    begun, until = _cpu_s(), time.monotonic() + limit_s
    with _hunting(bug, careful) as (hunt, steps):
        reference = hunt.reference()
        plans = planning.plans(reference.outcomes[0])
        result = Result(bug.name, careful, len(plans))
        count = len(plans)
        if careful and times:
            found = last_results(results).get((bug.name, False)) or last_results().get((bug.name, False))
            if found is None:
                raise KemuError(f"{results} does not say in how many plans {bug.name} was found")
            count = times * found.done
        for plan in itertools.islice(itertools.cycle(plans), count):
            if time.monotonic() > until:
                break
            outcome = hunt.trial(steps, plan)
            result.done += 1
            result.not_struck += not outcome.struck
            symptoms = oracles.bugs(reference.symptoms(outcome)) if outcome.struck else []
            if symptoms:
                shows = findings.shows(hunt, reference, steps, plan, symptoms)
                told = f"{' + '.join(one.what for one in plan)}: {symptoms[0].text} ({'; '.join(map(str, plan))})"
                (result.found if shows else result.once).append(told)
                if shows and not careful:
                    break
    result.cpu_s = round(_cpu_s() - begun, 1)
    return result


def known(bug: Bug, *, careful: bool) -> list[str]:
    """What goes wrong with the plan that is known to show it. Raises KemuError, also where nothing was struck."""
    with _hunting(bug, careful) as (hunt, steps):
        plan = perturbations.read(plans()[bug.name], {"crews": None}, bug.name)
        # Two runs, as time is short.
        reference = Reference([hunt.trial(steps, ()) for _ in range(2)], (), steps)
        if reference.problems:
            raise KemuError(f"{bug.name}: without any perturbation: {'; '.join(reference.problems)}")
        outcome = hunt.trial(steps, (plan,))
        if not outcome.struck:
            raise KemuError(f"{bug.name}: it has not come about that {plan}")
        return [one.text for one in oracles.bugs(reference.symptoms(outcome))]


def plans() -> dict[str, object]:
    """The known plans, by bug."""
    found: dict[str, object] = yaml.safe_load((HERE / "plans.yaml").read_text())
    return found


@contextlib.contextmanager
def _hunting(bug: Bug, careful: bool) -> Iterator[tuple[Hunt, tuple[Step, ...]]]:
    """A hunt, and its steps."""
    before = os.environ.get("CAREFUL")
    os.environ["CAREFUL"] = "1" if careful else "0"
    found = project(bug)
    out = Path(tempfile.mkdtemp(prefix=f"planted-{bug.name}-"))
    try:
        with Hunt(found, out) as hunt:
            yield hunt, found.steps
    finally:
        shutil.rmtree(out)
        if before is None:
            del os.environ["CAREFUL"]
        else:
            os.environ["CAREFUL"] = before


def project(bug: Bug) -> projects.Project:
    """Of a bug, with what its program needs built. Raises KemuError where it cannot be."""
    if bug.program in _BUILD:
        _BUILD[bug.program](HERE / bug.program)
    return projects.load(HERE / f"{bug.name}.yaml")


def _go(folder: Path) -> None:
    _run("go", "build", "-C", folder, "-o", "build/planted", ".", GOPROXY=None if _may_download() else "off")


def _java(folder: Path) -> None:
    arguments = folder / "build/arguments"
    if arguments.exists() and arguments.stat().st_mtime > (folder / "Crews.java").stat().st_mtime:
        return
    (folder / "build").mkdir(exist_ok=True)
    path = folder / "build/classpath"
    offline = () if _may_download() else ("-o",)
    _run("mvn", "-q", "-B", *offline, "-f", folder, "dependency:build-classpath", f"-Dmdep.outputFile={path}")
    _run("javac", "-nowarn", "-d", folder / "build", "-cp", path.read_text().strip(), folder / "Crews.java")
    arguments.write_text(f'-cp "{folder / "build"}:{path.read_text().strip()}"\n')


_BUILD = {"go": _go, "java": _java}


def _run(*command: object, **environment: str | None) -> None:
    """Raises Missing."""
    words = [str(one) for one in command]
    env = {**os.environ, **{key: value for key, value in environment.items() if value is not None}}
    try:
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=BUILD_S)
    except OSError as error:
        raise Missing(f"{words[0]}: {error.strerror}") from None
    if done.returncode:
        raise Missing(f"{' '.join(words[:2])}: {(done.stderr or done.stdout)[-2000:]}")


def _may_download() -> bool:
    return os.environ.get("KEMU_NIGHTLY") == "1"


def _cpu_s() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def last_results(results: Path = RESULTS) -> dict[tuple[str, bool], Result]:
    """By bug, and whether it is mended: of each search the last one."""
    last: dict[tuple[str, bool], Result] = {}
    for line in results.read_text().splitlines() if results.exists() else ():
        result = Result(**json.loads(line))
        last[result.bug, result.careful] = result
    return last


def table(results: Path = RESULTS) -> str:
    """In Markdown, from the last result of each search."""
    last = last_results(results)
    lines = [
        "| bug | what it takes | in | found by | in plans | CPU s | mended: found in trials |",
        "|---|---|---|---|---|---|---|",
    ]
    for bug in BUGS.values():
        planted, mended = last.get((bug.name, False)), last.get((bug.name, True))
        found = ["", "", ""]
        if planted is not None:
            by = planted.found[0].partition(":")[0] if planted.found else "nothing"
            found = [f"`{by}`", f"{planted.done} of {planted.plans}", f"{planted.cpu_s:.0f}"]
        twin = "" if mended is None else f"{len(mended.found)} in {mended.done}"
        cells = [f"`{bug.name}`: {bug.text}", bug.group, _LANGUAGES[bug.program], *found, twin]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Searches the planted bugs.")
    parser.add_argument("bugs", nargs="*", choices=[*BUGS, []], metavar="BUG", help="all, unless named")
    parser.add_argument("--careful", action="store_true", help="search the programs without the bugs")
    parser.add_argument("--times", type=int, default=0, help="with --careful: so often the plans that found the bug")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds for each search")
    parser.add_argument("--known", action="store_true", help="only the plan that is known to show it")
    parser.add_argument(
        "--table", action="store_true", help="print the table of docs/hunting.md from tests/hunt/planted.jsonl"
    )
    parser.add_argument("--results", type=Path, help="a file to which each result is appended, a line of JSON each")
    parser.add_argument("--resume", action="store_true", help="with --results: pass over what went as it should")
    options = parser.parse_args()
    if options.table:
        print(table())
        return 0
    right, skipped = 0, []
    results: Path = options.results or RESULTS
    done = last_results(results) if options.resume and options.results else {}
    names = options.bugs or list(BUGS)
    for name in names:
        before = done.get((name, options.careful))
        if before is not None and bool(before.found) != options.careful:
            right += 1
            continue
        try:
            if options.known:
                told = known(BUGS[name], careful=options.careful)
                right += bool(told) != options.careful
                print(f"{name}{', mended' if options.careful else ''}: {'; '.join(told) or 'nothing'}", flush=True)
                continue
            result = search(
                BUGS[name], careful=options.careful, times=options.times, limit_s=options.limit, results=results
            )
        except Missing as why:
            print(f"{name}: skipped: {why}", flush=True)
            skipped.append(name)
            continue
        except KemuError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        right += bool(result.found) != options.careful
        which = f"{name}, mended" if options.careful else name
        print(f"{which}: {len(result.found)} found in {result.done} plans of {result.plans}, {result.cpu_s:g} CPU s")
        for one in result.found:
            print(f"  {one}")
        for one in result.once:
            print(f"  once: {one}")
        sys.stdout.flush()
        if options.results:
            with options.results.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
    lacking = f"; not built: {', '.join(skipped)}" if skipped else ""
    print(f"{right} of {len(names)} as it should be{lacking}")
    return 1 if right + len(skipped) < len(names) else NOT_ALL if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
