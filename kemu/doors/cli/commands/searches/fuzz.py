"""``kemu fuzz``: generates whole scenarios, runs them, and reports failures."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kemu.doors.cli import exits, parsers, programs
from kemu.errors import KemuError

if TYPE_CHECKING:
    from kemu.lab.fuzz.campaigns import Failure, Search

DEFAULT_SCENARIOS = 200
EVERY_S = 10.0
"""Real time between two lines about how far it is."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "fuzz",
        help="generate whole scenarios, and search for ones that fail",
        description="Generate scenarios from the whole format, run them in virtual time, and judge them: by all checks,"
        " by invariants at the end of every run, by repeating the run, and by changes that must not affect "
        "the result. Failures are shrunk and written as scenarios. With FILE: judge these scenarios instead"
        " of generated ones.",
        epilog="Exit codes: 0 nothing failed, 1 something did, 2 the input is wrong, 130 interrupted.",
    )
    parser.add_argument(
        "file", nargs="*", metavar="FILE", help="a scenario file to judge, or the name of a shipped one"
    )
    parser.add_argument(
        "--scenarios",
        type=parsers.count,
        default=0,
        metavar="N",
        help=f"how many to draw; default: {DEFAULT_SCENARIOS}, or with --time as many as fit",
    )
    parser.add_argument(
        "--time", type=parsers.seconds, default=0.0, metavar="TIME", help="maximum time, such as 90s or 10m"
    )
    parser.add_argument(
        "--seed", type=parsers.whole_number, default=0, help="the same seed draws the same scenarios; default: 0"
    )
    parser.add_argument(
        "--only", type=parsers.whole_number, metavar="N", help="draw only the scenario with this number"
    )
    parser.add_argument(
        "--first", type=parsers.whole_number, default=0, metavar="N", help="number of the first scenario; default: 0"
    )
    parser.add_argument("--jobs", type=parsers.count, default=0, help="processes; default: one for each CPU")
    parser.add_argument(
        "--with", action="append", default=[], dest="pinned", metavar="FEATURE=LEVEL",
        help="a feature that all scenarios have, such as fault=crash (--with x=y lists them); repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--relation", action="append", default=[], metavar="NAME",
        help="with FILE: compare the run with one under this change, too, which changes nothing of it; repeatable",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: runs/fuzz-SEED")
    parser.add_argument("--no-shrink", action="store_true", help="do not shrink failures")
    parser.add_argument("--show", action="store_true", help="print the scenario of --only, and run nothing")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    if options.file:
        return _judge(options)
    pinned = _pinned(options.pinned)
    if options.show:
        return _show(options, pinned)
    return _search(options, pinned)


def _pinned(words: list[str]) -> dict[str, str]:
    found = {}
    for word in words:
        name, equals, level = word.partition("=")
        if not equals:
            raise KemuError(f"--with {word}: must be FEATURE=LEVEL, such as fault=crash")
        found[name] = level
    return found


def _show(options: argparse.Namespace, pinned: dict[str, str]) -> int:
    from kemu.lab.exploration.shrinking import texts
    from kemu.lab.fuzz import features
    from kemu.lab.fuzz.drawing import drawn

    if options.only is None:
        raise KemuError("--show needs --only: the number of the scenario")
    levels = features.Plan(options.seed, pinned).levels(options.only)
    print(texts.text(drawn.draw(options.seed, options.only, levels).data), end="")
    return exits.HOLDS


def _judge(options: argparse.Namespace) -> int:
    from kemu.doors.cli import inputs
    from kemu.lab.fuzz import campaigns
    from kemu.lab.scenario import catalog

    wrong = []
    for file in map(catalog.find, options.file):
        # Its mistakes are the user's, with their places.
        inputs.load(str(file), quiet=True)
        wrong += [
            {"file": str(file), "id": finding.id, "detail": finding.detail, "relation": finding.relation}
            for finding in campaigns.of_file(file, tuple(options.relation))
        ]
    if options.json:
        print(json.dumps({"failures": wrong}, ensure_ascii=False))
    for one in wrong if not options.json else ():
        print(f"{one['file']}: {one['id']}: {one['detail']}")
    if not wrong and not options.json:
        print("nothing is wrong")
    return exits.FAILS if wrong else exits.HOLDS


def _search(options: argparse.Namespace, pinned: dict[str, str]) -> int:
    from kemu.lab.fuzz.campaigns import Options, Search

    scenarios = options.scenarios or (0 if options.time else DEFAULT_SCENARIOS)
    out = options.out or Path("runs") / f"fuzz-{options.seed}"
    search_options = Options(
        out, options.seed, scenarios, options.time, options.jobs or os.cpu_count() or 1, options.only, options.first,
        pinned, not options.no_shrink,
    )  # fmt: skip
    is_interrupted = False
    with Search(search_options) as search:
        told_s = time.monotonic()
        try:
            for _ in search.go():
                if not options.json and time.monotonic() - told_s > EVERY_S:
                    told_s = time.monotonic()
                    print(_progress(search), file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            is_interrupted = True
        failures: list[Any] = []
        try:
            _take(failures, search, options, hurries=is_interrupted)
        except KeyboardInterrupt:
            # What was found is kept, but nothing more is made small.
            is_interrupted = True
            _take(failures, search, options, hurries=True)
        data = _data(options, search, failures)
        if options.json:
            print(json.dumps(data, ensure_ascii=False))
        else:
            _summary(data)
    if is_interrupted:
        return exits.INTERRUPTED
    return exits.FAILS if failures else exits.HOLDS


def _take(failures: list[Failure], search: Search, options: argparse.Namespace, *, hurries: bool) -> None:
    """Write and report the kinds of failure that are new."""
    for failure in search.failures(programs.name(), len(failures), hurries=hurries):
        failures.append(failure)
        if not options.json:
            _tell(failure, search)


def _progress(search: Search) -> str:
    rate = search.scenarios / search.seconds if search.seconds else 0.0
    ways = f"{search.ways} way{'' if search.ways == 1 else 's'} to fail"
    return f"{search.scenarios} scenarios, {rate:.1f} a second, {search.coverage.pairs} pairs of features, {ways}"


def _tell(failure: Failure, search: Search) -> None:
    under = f" under {failure.relation}" if failure.relation and failure.relation != failure.id else ""
    print(f"{failure.id}{under}: {len(failure.numbers)} of {search.scenarios} scenarios")
    print(f"   {failure.detail.splitlines()[0][:300] if failure.detail else ''}")
    print(f"   {failure.command}")
    print(f"   as it was drawn: {search.drawn_again(failure.numbers[0], programs.name())}")


def _data(options: argparse.Namespace, search: Search, failures: list[Failure]) -> dict[str, Any]:
    return {
        "seed": options.seed,
        "scenarios": search.scenarios,
        "seconds": round(search.seconds, 1),
        "failures": [failure.data() for failure in failures],
        "coverage": search.coverage.data(),
    }


def _summary(data: dict[str, Any]) -> None:
    covered = data["coverage"]
    compared = sum(one["compared"] for one in covered["relations"].values())
    print(
        f"seed {data['seed']}: {data['scenarios']} scenarios in {covered['runs']} runs and {data['seconds']:g} s; "
        f"{covered['virtual_s'] / 3600:.1f} h of virtual time, {covered['events']} events"
    )
    print(
        f"features: {covered['levels']['met']} of {covered['levels']['of']} levels, {covered['pairs']['met']} of "
        f"{covered['pairs']['of']} pairs; {len(covered['kinds'])} kinds of events, {len(covered['reasons'])} reasons; "
        f"{compared} outcomes compared"
    )
    if covered["given_up"]:
        print(f"{covered['given_up']} scenarios were too large and were given up")
    ways = len(data["failures"])
    print("nothing failed" if not ways else f"{ways} way{'' if ways == 1 else 's'} to fail")
