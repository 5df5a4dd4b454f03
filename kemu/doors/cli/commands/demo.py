"""``kemu demo``: two schedulers race for one node."""

from __future__ import annotations

import argparse

from kemu.doors.cli.commands.runs import run

RACE = "races/two-schedulers-one-node"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo",
        help="show a race: two schedulers, one node",
        description=f"Run the shipped scenario {RACE}: two schedulers see the same room on one node, and both take it.",
    )
    run.add_options(parser)
    parser.set_defaults(scenario=RACE)
