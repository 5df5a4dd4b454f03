"""The entry point: arguments, exit codes, and errors as one clear text.

Exit codes: 0 holds, 1 a check or an expectation failed, 2 the input is wrong, 3 unknown, 4 the user's own code raised,
130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import kemu
from kemu.cli import exits
from kemu.errors import KemuError, ScenarioError, SimulationError, UserCodeFailed
from kemu.runtime import user_code

Command = Callable[[argparse.Namespace], int]


MOST_MISTAKES = 100
"""How many are shown at once."""

EXTRAS = {"ray": "ray", "grpc_health": "ray", "grpc_reflection": "ray", "opentelemetry": "otlp"}
"""Packages that only an extra of kemu installs, and which."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    command: Command | None = getattr(options, "command", None)
    if command is None:
        parser.print_help()
        return exits.INPUT
    try:
        return command(options)
    except ScenarioError as error:
        count = len(error.problems)
        for problem in error.problems[:MOST_MISTAKES]:
            print(problem, file=sys.stderr)
        rest = f", of which the first {MOST_MISTAKES} are above" if count > MOST_MISTAKES else ""
        print(f"{count} mistake{'s' if count != 1 else ''}{rest}", file=sys.stderr)
        return exits.INPUT
    except UserCodeFailed as error:
        print(f"kemu: {error}", file=sys.stderr)
        return exits.USER_CODE
    except SimulationError as error:
        print(f"kemu: the run broke: {type(error).__name__}: {error}", file=sys.stderr)
        return exits.FAILS
    except KemuError as error:
        print(f"kemu: {error}", file=sys.stderr)
        return exits.INPUT
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        print(f"kemu: this needs the Python package {error.name}: pip install 'kemu[{extra}]'", file=sys.stderr)
        return exits.INPUT
    except BrokenPipeError:
        # The reader of a pipe (head, less) has seen enough.
        sys.stderr.close()
        return exits.HOLDS
    except OSError as error:
        # A file or folder that the user named: --out where nobody may write, a full disk. Without a name it is a bug.
        if error.filename is None:
            raise
        print(f"kemu: {error.filename}: {error.strerror}", file=sys.stderr)
        return exits.INPUT
    except KeyboardInterrupt:
        print("kemu: interrupted", file=sys.stderr)
        return exits.INTERRUPTED
    except Exception as error:
        # A plugin that raises while it is made, say; an actor's exception arrives as UserCodeFailed.
        place = user_code.place_of(error)
        if place is None:
            raise
        print(f"kemu: {type(error).__name__}: {error}\nin your own code: {place}", file=sys.stderr)
        return exits.USER_CODE


def _parser() -> argparse.ArgumentParser:
    from kemu.cli import bench, conformance, explain, explore, replay, run, scenarios, trace

    parser = argparse.ArgumentParser(
        prog="kemu",
        description="A Kubernetes scheduling control plane to race, starve and break: in virtual time or on Ray.",
        epilog="Exit codes: 0 holds, 1 a check or expectation failed, 2 the input is wrong, 3 unknown, 4 your own code "
        "raised.",
    )
    parser.add_argument("--version", action="version", version=f"kemu {kemu.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for module in (run, explore, explain, replay, trace, scenarios, bench, conformance):
        module.add_to(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
