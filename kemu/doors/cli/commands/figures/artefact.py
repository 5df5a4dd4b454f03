"""``kemu artefact``: a folder that makes every figure and table of a paper by one command."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from kemu.doors.cli import exits
from kemu.errors import KemuError

_FILES = "kemu.doors.cli.commands.figures.artefact_files"
_PINNED = ("kemu", "altair", "duckdb", "numpy", "pyarrow", "scipy", "vl-convert-python")
"""The packages on which the bytes of figures and tables depend."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "artefact",
        help="create the artefact of a paper: one command makes every figure and table",
        description="Write a folder with a policy, an experiment, the versions of all packages, a CITATION.cff, and "
        "the script reproduce, which makes every figure and table from nothing and compares their checksums.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="a new or empty folder")
    parser.add_argument("--title", default="", help="of the paper; default: the name of the folder")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    from importlib import resources

    folder: Path = options.folder
    values = {"TITLE": _title(options.title or folder.resolve().name), "VERSIONS": "\n".join(_versions())}
    try:
        if folder.is_dir() and any(folder.iterdir()):
            raise KemuError(f"{folder}: is not empty; the files of an artefact go to a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(resources.files(_FILES).iterdir(), key=lambda each: each.name):
            if file.name.endswith(".in"):
                made = folder / file.name.removesuffix(".in")
                made.write_text(re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], file.read_text("utf-8")), "utf-8")
        (folder / "reproduce").chmod(0o755)
    except OSError as error:
        raise KemuError(f"{folder}: {error.strerror or error}") from None
    print(
        f"cd {shlex.quote(str(folder))} && ./reproduce\n    makes every figure and table; README.md says what to change"
    )
    return exits.HOLDS


def _title(text: str) -> str:
    """The title on one line, safe for YAML."""
    return " ".join(text.replace("\\", " ").replace('"', "'").split())


def _versions() -> Iterator[str]:
    from importlib import metadata

    for package in _PINNED:
        try:
            yield f"{package}=={metadata.version(package)}"
        except metadata.PackageNotFoundError:
            raise KemuError(
                f"an artefact needs the Python package {package}: pip install 'kemu[plots,sweep]'"
            ) from None
