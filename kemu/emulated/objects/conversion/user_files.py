"""Files that users name: regular ones, of a bounded size, as text."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

import yaml

from kemu.emulated.objects.conversion import yaml_texts
from kemu.emulated.objects.plain import Json
from kemu.errors import KemuError

MAX_BYTES = 64 << 20
"""Most bytes of a file with YAML or JSON."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


class FileProblem(KemuError):
    """It cannot be read; the text says why, without its name."""


def read_bytes(file: Path, most: int | None = MAX_BYTES) -> bytes:
    """``most``: bytes; None: a file of any size. Raises FileProblem."""
    try:
        check(file)
        with file.open("rb") as opened:
            return bounded(opened, most)
    except OSError as error:
        raise FileProblem(f"cannot be read: {error.strerror or error}") from None


def read_text(file: Path) -> str:
    """Raises FileProblem."""
    return text(read_bytes(file))


def read_yaml(file: Path) -> Json:
    """One document. Raises FileProblem, also where it stands for too much."""
    try:
        return yaml_texts.safe_load(read_text(file))
    except yaml.YAMLError as error:
        raise FileProblem(f"is not YAML: {error}") from None


def text(data: bytes) -> str:
    """Raises FileProblem."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileProblem(f"is not UTF-8 text: {error}") from None


def check(file: Path) -> None:
    """Raises FileProblem for what is no regular file, and OSError for what is not there."""
    mode = os.stat(file).st_mode
    for is_one, name in _KINDS:
        if is_one(mode):
            raise FileProblem(f"cannot be read: it is {name}, not a regular file")


def bounded(opened: BinaryIO, most: int | None = MAX_BYTES) -> bytes:
    """All of a stream. Raises FileProblem where that is too much."""
    if most is None:
        return opened.read()
    data = opened.read(most + 1)
    if len(data) > most:
        raise FileProblem(f"cannot be read: it is larger than {most >> 20} MiB")
    return data
