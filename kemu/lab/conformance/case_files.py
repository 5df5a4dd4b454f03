"""Files of recorded cases: one JSON object ``{"case": …, "expect": …}`` a line, plain or gzipped.

``case.family`` says to which family it belongs; without it ``case.id`` is ``<family>-<seed>``.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kemu.errors import KemuError

_GZIP_MAGIC = b"\x1f\x8b"


class CaseFileError(KemuError):
    """A file of cases cannot be read, or is none."""


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    question: dict[str, Any]
    expect: dict[str, Any]
    """What the real code answered."""

    @property
    def family(self) -> str:
        named = self.question.get("family")
        if named and isinstance(named, str):
            return named
        family, _, _ = self.id.rpartition("-")
        return family or self.id


def read(path: Path) -> Iterator[Case]:
    """The cases of a file, in its order. Raises CaseFileError, which names the file and the line."""
    try:
        content = path.read_bytes()
        if content.startswith(_GZIP_MAGIC):
            content = gzip.decompress(content)
        lines = content.decode().splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise CaseFileError(f"{path}: cannot be read: {error}") from error
    if not any(line.strip() for line in lines):
        raise CaseFileError(f"{path}: no case in it")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _case(path, number, line)


def _case(path: Path, number: int, line: str) -> Case:
    try:
        entry = json.loads(line)
        question, expect = entry["case"], entry["expect"]
        identifier = question["id"]
    except (ValueError, KeyError, TypeError) as error:
        raise CaseFileError(
            f"{path}:{number}: not a recorded case ({{case: {{id: …}}, expect: …}}): {error}"
        ) from error
    if not isinstance(identifier, str) or not isinstance(expect, dict):
        raise CaseFileError(f"{path}:{number}: not a recorded case: id must be a text, expect an object")
    return Case(identifier, question, expect)
