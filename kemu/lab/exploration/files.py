"""A campaign on disk: its header, then one line of JSON for each run, in the order of the runs.

The folder holds ``campaign.jsonl`` and the scenario. A campaign that was stopped, or whose process died, is taken up
from there: what the file holds is not run again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kemu
from kemu.emulated.objects.plain import Json
from kemu.errors import KemuError
from kemu.lab.exploration import results
from kemu.lab.exploration.results import RunRecord
from kemu.lab.exploration.sources import Source

CAMPAIGN_FILE = "campaign.jsonl"
SCENARIO_FILE = "scenario.yaml"
WRITE_EVERY = 16
"""Records."""


class CampaignFile:
    """Reads what is there, and appends to it."""

    def __init__(self, folder: Path, header: Mapping[str, Any], source: Source) -> None:
        """Raises KemuError where the folder holds another campaign, or one of another version of kemu."""
        self._path = folder / CAMPAIGN_FILE
        wanted = {
            "campaign": 1,
            "kemu": kemu.__version__,
            **header,
            "document": hashlib.sha256(source.text.encode()).hexdigest(),
        }
        self.records: dict[int, RunRecord] = {}
        folder.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            self._read(wanted)
        else:
            (folder / SCENARIO_FILE).write_text(source.text)
            self._path.write_text(json.dumps(wanted) + "\n")
        self._unwritten: list[str] = []

    def _read(self, wanted: Mapping[str, Any]) -> None:
        """The last line may be half of one: it is cut off."""
        with self._path.open("rb") as file:
            end = 0
            for number, line in enumerate(file):
                try:
                    data = json.loads(line)
                except ValueError:
                    if line.endswith(b"\n"):
                        raise KemuError(f"{self._path}:{number + 1}: not a line of a campaign") from None
                    break
                if number == 0:
                    self._compare(data, wanted)
                else:
                    record = results.from_data(data)
                    self.records[record.number] = record
                end += len(line)
        with self._path.open("rb+") as cut:
            cut.truncate(end)
        if not end:
            raise KemuError(f"{self._path}: not a campaign")

    def _compare(self, found: Json, wanted: Mapping[str, Any]) -> None:
        for key, value in wanted.items():
            if not isinstance(found, dict) or found.get(key) != value:
                raise KemuError(f"{self._path} is another campaign: its {key} differs; choose another folder (--out)")

    def append(self, record: RunRecord) -> None:
        self._unwritten.append(json.dumps(results.as_data(record)) + "\n")
        if len(self._unwritten) >= WRITE_EVERY:
            self.write()

    def write(self) -> None:
        """What was appended so far."""
        if self._unwritten:
            with self._path.open("a") as file:
                file.writelines(self._unwritten)
            self._unwritten.clear()


def text_of(value: Json) -> str:
    """For ``--set``: JSON is YAML."""
    return json.dumps(value)
