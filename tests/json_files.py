"""JSON files for readers: what fits on a line stands on one, so that a table has a line for each row.

``python -m tests.json_files FILE …`` lays files out anew.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

WIDTH = 120


def load(file: Path) -> Any:
    """Empty: there is no such file."""
    return json.loads(file.read_text()) if file.exists() else {}


def write(file: Path, value: Any, *, sort_keys: bool = False) -> None:
    file.write_text(text(value, sort_keys=sort_keys) + "\n")


def text(value: Any, *, sort_keys: bool = False) -> str:
    return _Writer(sort_keys).text(value, "", 0)


class _Writer:
    def __init__(self, sort_keys: bool) -> None:
        self._sort_keys = sort_keys

    def text(self, value: Any, indent: str, before: int) -> str:
        """``before``: width of the key that its first line follows."""
        line = json.dumps(value, sort_keys=self._sort_keys)
        if len(indent) + before + len(line) < WIDTH or not isinstance(value, dict | list):
            return line
        deeper = indent + " "
        if isinstance(value, list):
            rows = [self.text(one, deeper, 0) for one in value]
            return "[\n" + ",\n".join(deeper + row for row in rows) + f"\n{indent}]"
        rows = []
        for key in sorted(value) if self._sort_keys else value:
            named = f"{json.dumps(key)}: "
            rows.append(named + self.text(value[key], deeper, len(named)))
        return "{\n" + ",\n".join(deeper + row for row in rows) + f"\n{indent}}}"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(Path(name), load(Path(name)))
