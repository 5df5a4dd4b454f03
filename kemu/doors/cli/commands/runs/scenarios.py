"""``kemu scenarios``: lists, shows and validates scenarios; the schema for editors."""

from __future__ import annotations

import argparse
import itertools
import json
import textwrap
from pathlib import Path
from typing import Any

from kemu.doors.cli import exits, parsers
from kemu.errors import KemuError, Problem, ScenarioError
from kemu.lab.scenario import catalog


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("scenarios", help="list, show and validate scenarios", description=__doc__)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the scenarios that come with kemu")
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    listing.set_defaults(command=list_command)
    show = actions.add_parser("show", help="print one of them")
    show.add_argument("scenario", help="the name of a shipped scenario, or a file")
    show.set_defaults(command=show_command)
    validate = actions.add_parser(
        "validate", help="say all mistakes of scenarios and experiments, with file, line and column"
    )
    validate.add_argument("scenario", nargs="+", help=f"{parsers.SCENARIO}; or an experiment, a file for kemu sweep")
    validate.add_argument("--data", type=Path, metavar="DIR", help="the folder with the files of a trace")
    validate.add_argument("--json", action="store_true", help="print one JSON object")
    validate.set_defaults(command=validate_command)
    schema = actions.add_parser("schema", help="print the JSON Schema of the format, for editors")
    schema.add_argument("--experiment", action="store_true", help="that of experiments")
    schema.set_defaults(command=schema_command)


LEAST_TEXT = 36
"""Columns that a sentence needs beside the name."""


def list_command(options: argparse.Namespace) -> int:
    import yaml

    rows = []
    for name, path in catalog.shipped().items():
        document = yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        rows.append((name, " ".join(document["metadata"].get("description", "").split())))
    if options.json:
        print(json.dumps({"scenarios": [{"name": name, "description": text} for name, text in rows]}))
        return 0
    from rich.console import Console
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        width = max(len(name) for name, _ in rows)
        for name, text in rows:
            print(f"{name:{width}}  {_first_sentence(text)}")
        return 0
    for number, (_, group) in enumerate(itertools.groupby(rows, key=lambda row: row[0].rpartition("/")[0])):
        if number:
            console.print()
        scenarios = list(group)
        width = max(len(name) for name, _ in scenarios)
        # Where the names leave no room for a sentence it stands below.
        lead, room = f"{'':{width}}  ", console.width - width - 2
        if room < LEAST_TEXT:
            lead, room = "\n    ", console.width - 4
        for name, text in scenarios:
            told = textwrap.shorten(_first_sentence(text), max(room, 1), placeholder="…")
            console.print(Text.assemble((name, "bold"), lead[len(name) :] if lead[0] == " " else lead, (told, "dim")))
    console.print("[dim]kemu scenarios show NAME prints one, kemu run NAME runs it[/]", highlight=False)
    return 0


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].removesuffix(".")


def show_command(options: argparse.Namespace) -> int:
    print(catalog.find(options.scenario).read_text(), end="")
    return 0


def validate_command(options: argparse.Namespace) -> int:
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for name in options.scenario:
        try:
            found = _load(name, options)
            warnings.extend(found.warnings)
        except ScenarioError as error:
            problems.extend(error.problems)
        except KemuError as error:
            # The other files are checked all the same.
            problems.append(Problem(name, 1, 1, "", str(error).removeprefix(f"{name}: ")))
        else:
            if not options.json:
                print(f"{found.file}: valid")
                for line in _loads(found):
                    print(f"  {line}")
    if options.json:
        result = {"valid": not problems, "problems": problems, "warnings": warnings}
        print(json.dumps(result, default=lambda problem: problem.__dict__))
    elif problems:
        raise ScenarioError(problems)
    return exits.INPUT if problems else exits.HOLDS


def _loads(found: Any) -> list[str]:
    """The rates computed from loads, in all variants of a scenario."""
    from kemu.lab.scenario.loading import loader, loads
    from kemu.lab.scenario.scenarios import Scenario

    if not isinstance(found, Scenario):
        return []
    lines = [line for _, variant in loader.variants(found) for line in loads.told(variant.workloads)]
    return list(dict.fromkeys(lines))


def _load(name: str, options: argparse.Namespace) -> Any:
    """The scenario or experiment in a file."""
    from kemu.doors.cli import inputs
    from kemu.emulated.settings import documents
    from kemu.lab.scenario.loading.objects import foreign_files

    path = Path(name)
    if path.is_file() and foreign_files.is_experiment(documents.read(path)):
        from kemu.lab.sweep.experiments import loader

        experiment = loader.load(path, options.data)
        if not options.json:
            inputs.warn(experiment.warnings)
        return experiment
    return inputs.load(name, options.data, quiet=options.json)


def schema_command(options: argparse.Namespace) -> int:
    if options.experiment:
        from kemu.lab.sweep.experiments import keys

        print(json.dumps(keys.json_schema(), indent=2))
        return 0
    from kemu.lab.scenario.format import schema

    print(json.dumps(schema.json_schema(), indent=2))
    return 0
