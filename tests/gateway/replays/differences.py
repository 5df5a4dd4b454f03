"""Which answers differ from the recorded ones, each with its reason (``differences.yaml``)."""

from __future__ import annotations

from pathlib import Path

import yaml

FILE = Path(__file__).parent / "differences.yaml"


def argued() -> dict[int, str]:
    """By number of the record in the file, why it differs."""
    found: dict[int, str] = {}
    for group in yaml.safe_load(FILE.read_text()):
        for number in group["records"]:
            assert number not in found, f"record {number} has two reasons"
            found[number] = group["why"]
    return found
