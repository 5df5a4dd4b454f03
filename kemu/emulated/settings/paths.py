"""Paths into plain data as users write them: ``schedulers[0].policy.queue``, ``metadata.labels[a.b/c]``."""

from __future__ import annotations

import re
from typing import Any

from kemu.emulated.settings.documents import Path

_STEP = re.compile(r"""\.?([A-Za-z0-9_-]+)|\[([0-9]+)\]|\[["']?([^\]"']+)["']?\]""")


def parse(text: str, example: str) -> Path:
    """Raises ValueError, which shows the ``example``."""
    steps: list[str | int] = []
    end = 0
    for step in _STEP.finditer(text):
        if step.start() != end or (end == 0 and step[0].startswith(".")):
            break
        key, index, quoted = step.groups()
        steps.append(int(index) if index is not None else key or quoted)
        end = step.end()
    if end != len(text) or not steps:
        raise ValueError(f"{text!r} is not a path; write it as {example}")
    return tuple(steps)


def get(data: object, path: Path) -> Any:
    """The value at a path. Raises LookupError where it leads nowhere."""
    for step in path:
        if isinstance(step, int) != isinstance(data, list) or not isinstance(data, list | dict):
            raise LookupError(step)
        data = data[step]  # type: ignore[index]
    return data
