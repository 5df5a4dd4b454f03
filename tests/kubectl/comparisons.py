"""Compares what kubectl printed with kemu with what it printed with the real server, command by command."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.kubectl import recordings, sessions

ARGUED = Path(__file__).parent / "differences.yaml"
"""Why what differs: commands by their texts, requests (without kubectl) by their answers."""


@dataclass(frozen=True)
class Difference:
    command: str
    lines: tuple[str, ...]
    """``-`` the real server's, ``+`` kemu's."""


def argued() -> dict[str, str]:
    """By command, why its text differs."""
    return {command: group["why"] for group in _groups() for command in group.get("commands", ())}


def argued_exchanges() -> dict[str, str]:
    """By part of step, request and difference, why it differs."""
    return {title: group["why"] for group in _groups() for title in group.get("exchanges", ())}


def _groups() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(ARGUED.read_text())
    return found


def differences(real: Sequence[tuple[str, str]], results: Iterable[sessions.Result]) -> list[Difference]:
    """Both have the same commands in the same order; a command may occur more than once."""
    found = []
    ours = list(results)
    assert [name for name, _ in real] == [result.name for result in ours], "recorded with another script: record again"
    for (name, expected), result in zip(real, ours, strict=True):
        if expected != result.text:
            lines = difflib.unified_diff(expected.splitlines(), result.text.splitlines(), "real", "kemu", "", "", 1)
            found.append(Difference(name, tuple(lines)))
    return found


def report(results: Sequence[sessions.Result]) -> str:
    """All that differs, for a reader; first what nobody has argued."""
    found = differences(recordings.outputs(), results)
    reasons = argued()
    text = []
    for difference in sorted(found, key=lambda one: one.command in reasons):
        text.append(f"=== {difference.command}")
        if difference.command in reasons:
            text.append(f"    argued: {reasons[difference.command]}")
        text += difference.lines[2:]
    unknown = [one for one in found if one.command not in reasons]
    text.append(f"{len(results)} commands, {len(results) - len(found)} alike, {len(unknown)} differ without a reason")
    return "\n".join(text)
