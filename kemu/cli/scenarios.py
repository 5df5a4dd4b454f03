"""``kemu scenarios``: what is shipped, what one says, whether one is right, the schema for editors."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kemu.cli import catalog, exits
from kemu.errors import Problem, ScenarioError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("scenarios", help="list, show and validate scenarios", description=__doc__)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the scenarios that come with kemu")
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    listing.set_defaults(command=list_command)
    show = actions.add_parser("show", help="print one of them")
    show.add_argument("scenario")
    show.set_defaults(command=show_command)
    validate = actions.add_parser("validate", help="say all mistakes of scenarios, with file, line and column")
    validate.add_argument("scenario", nargs="+")
    validate.add_argument("--data", type=Path, metavar="DIR", help="where the files of a trace are")
    validate.add_argument("--json", action="store_true", help="print one JSON object")
    validate.set_defaults(command=validate_command)
    schema = actions.add_parser("schema", help="print the JSON Schema of the format, for editors")
    schema.set_defaults(command=schema_command)


def list_command(options: argparse.Namespace) -> int:
    import yaml

    rows = []
    for name, path in catalog.shipped().items():
        document = yaml.safe_load(path.read_text())
        rows.append((name, " ".join(document["metadata"].get("description", "").split())))
    if options.json:
        print(json.dumps({"scenarios": [{"name": name, "description": text} for name, text in rows]}))
        return 0
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold", style="dim")
    for name, text in rows:
        first_sentence = text.partition(". ")[0].removesuffix(".")
        table.add_row(escape(name), escape(first_sentence))
    console = Console()
    console.print(table)
    console.print("[dim]kemu scenarios show NAME prints one, kemu run NAME runs it[/]", highlight=False)
    return 0


def show_command(options: argparse.Namespace) -> int:
    print(catalog.find(options.scenario).read_text(), end="")
    return 0


def validate_command(options: argparse.Namespace) -> int:
    from kemu.scenario import loader

    problems: list[Problem] = []
    for name in options.scenario:
        path = catalog.find(name)
        try:
            loader.load(path, options.data)
        except ScenarioError as error:
            problems.extend(error.problems)
        else:
            if not options.json:
                print(f"{path}: valid")
    if options.json:
        print(json.dumps({"valid": not problems, "problems": [problem.__dict__ for problem in problems]}))
    elif problems:
        raise ScenarioError(problems)
    return exits.INPUT if problems else exits.HOLDS


def schema_command(options: argparse.Namespace) -> int:
    from kemu.scenario import schema

    print(json.dumps(schema.json_schema(), indent=2))
    return 0
