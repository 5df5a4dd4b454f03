"""What the real server made kubectl print, and the HTTP exchanges of that session: files in ``recorded/``."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.kubectl import sessions

FOLDER = Path(__file__).parent / "recorded"
OUTPUTS = FOLDER / "outputs.txt"
EXCHANGES = FOLDER / "exchanges.jsonl.gz"
_MARK = "=== "


def write_outputs(results: Iterable[sessions.Result], path: Path = OUTPUTS) -> None:
    path.write_text("".join(f"{_MARK}{result.name}\n{result.text}" for result in results))


def outputs(path: Path = OUTPUTS) -> list[tuple[str, str]]:
    """Name of each command and its text, in the order of the script."""
    found: list[tuple[str, str]] = []
    for section in ("\n" + path.read_text()).split("\n" + _MARK)[1:]:
        name, _, text = section.partition("\n")
        found.append((name, text.rstrip() + "\n"))
    return found


def write_exchanges(exchanges: list[dict[str, Any]], path: Path = EXCHANGES) -> None:
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as file:
        file.write("".join(json.dumps(exchange, sort_keys=True) + "\n" for exchange in exchanges).encode())


def exchanges(path: Path = EXCHANGES) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]
