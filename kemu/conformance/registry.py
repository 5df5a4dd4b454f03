"""The kinds of recorded cases. Each is a module of this package with two functions, imported when it is asked for.

``answer(case)`` gives what kemu decides, as JSON data; ``agrees(expect, answer)`` what of it differs from the record,
one line each and none where it agrees.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

_MODULES = {
    "kubelet": "kemu.conformance.kubelet",
    "scheduler": "kemu.conformance.scheduler",
    "timeline": "kemu.conformance.timeline",
}


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    answer: Callable[[Json], Json]
    agrees: Callable[[Json, Json], list[str]]

    def judged(self, case: Json, expect: Json) -> tuple[Json, list[str]]:
        """The answer to a case and what of it differs from the record."""
        answered = self.answer(case)
        return answered, self.agrees(expect, answered)


def names() -> list[str]:
    """The kinds that there are."""
    return [name for name, module in _MODULES.items() if importlib.util.find_spec(module) is not None]


def kind(name: str) -> Kind:
    """Raises KeyError."""
    module = importlib.import_module(_MODULES[name])
    return Kind(name, module.answer, module.agrees)
