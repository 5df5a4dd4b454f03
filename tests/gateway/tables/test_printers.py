"""Rows as the printers of Kubernetes make them, for random objects of every kind.

``recorded*.jsonl.gz`` hold what ``scripts/record tables`` answered; fresh objects are compared by

    python -m tests.conformance.generate tables --seed 7 --count 2000 | scripts/record tables > fresh.jsonl
    KEMU_TABLES=fresh.jsonl pytest tests/gateway/tables
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kemu.emulated.gateway.tables import tables
from kemu.emulated.objects import resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.defaulting import defaults
from tests.conformance.generators.tables import WITHOUT_PRINTER

FRESH = os.environ.get("KEMU_TABLES")
RECORDED = [Path(FRESH)] if FRESH else sorted(Path(__file__).parent.glob("recorded*.jsonl.gz"))


def records() -> Iterator[dict[str, Any]]:
    for file in RECORDED:
        opened = gzip.open if file.suffix == ".gz" else open
        with opened(file, "rt") as lines:
            yield from map(json.loads, lines)


def test_cells_and_columns_are_those_of_the_real_printers() -> None:
    seen: set[str] = set()
    for record in records():
        manifest, expected = record["case"]["object"], record["expect"]
        obj = convert.from_manifest(manifest)
        defaults.apply(obj)
        row = tables.cells(resources.of(obj), obj, expected["now"] * 1_000_000_000)
        assert row["cells"] == expected["cells"], json.dumps(manifest)
        assert [type(cell) for cell in row["cells"]] == [type(cell) for cell in expected["cells"]]
        assert row.get("conditions") == expected.get("conditions")
        columns = tables.columns(resources.of(obj))
        assert [[each["name"], each["type"], each["format"], each["priority"]] for each in columns] == expected[
            "columns"
        ], manifest["kind"]
        seen.add(manifest["kind"])
    assert seen == {row.kind for row in resources.RESOURCES} - set(WITHOUT_PRINTER)
