"""What searches that keep a record have in common: a JSON file that holds, by name, what was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from tests import json_files


def search(
    file: Path,
    order: Iterable[str],
    asked: Sequence[str],
    arguments: Sequence[str],
    find: Callable[[str], dict[str, Any] | None],
    missing_text: str,
) -> int:
    """Search the names in ``arguments``, ``--missing`` ones, or all of ``asked``; record each result at once.

    ``order``: of the names in the file. Returns the exit code: 1 when something was not found.
    """
    recorded = json_files.load(file)
    if list(arguments) == ["--missing"]:
        asked = [name for name in asked if name not in recorded]
    elif arguments:
        asked = arguments
    missing = 0
    for name in asked:
        begun = time.perf_counter()
        found = find(name)
        print(f"{name}: {found or missing_text} ({time.perf_counter() - begun:.1f} s)", flush=True)
        if found is None:
            missing += 1
            recorded.pop(name, None)
        else:
            recorded[name] = found
        ordered = {each: recorded[each] for each in order if each in recorded}
        json_files.write(file, ordered)
    print(f"{len(asked) - missing} of {len(asked)} recorded")
    return 1 if missing else 0
