"""Which requests a fault strikes: those that match, and of these some by their number, or by chance."""

from __future__ import annotations

import fnmatch
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kemu.emulated.gateway.faults.requests import Asked
from kemu.runtime import distributions


class Rule:
    """One fault that is in force. It counts what matches it from when it begins."""

    def __init__(
        self,
        fault: str,
        what: str,
        parameters: Mapping[str, Any],
        stream: random.Random,
        hit: Callable[[str], None] = lambda peer: None,
    ) -> None:
        """``fault``: its id. ``what`` and ``parameters``: as in the table of kinds. ``hit``: to be told of strikes."""
        self.fault = fault
        self.what = what
        self.parameters = parameters
        self.hit = hit
        self.random = stream
        self.matched = 0
        self.struck = 0
        self.ended = False
        self._nth: int | None = parameters.get("nth")
        self._times: int | None = parameters.get("times")
        self._late = distributions.parse(parameters["by"]) if "by" in parameters else None
        self._probability = float(parameters.get("probability", 1.0))

    def seconds(self) -> float:
        """How late, or how old, what it strikes is."""
        return self._late.draw(self.random) if self._late is not None else 0.0

    def names_user(self) -> bool:
        """Whether it needs to know who asks."""
        return bool(self.parameters.get("user"))

    def matches(self, asked: Asked, user: str) -> bool:
        """Whether the request is one of those that the fault is about."""
        parameters = self.parameters
        return (
            _is_one(asked.agent, parameters.get("agent"))
            and _is_one(asked.verb, parameters.get("verb"))
            and _is_one(asked.resource, parameters.get("resource"))
            and _is_one(asked.namespace, parameters.get("namespace"))
            and _is_one(asked.name, parameters.get("name"))
            and _is_one(user, parameters.get("user"))
        )

    def strikes(self) -> bool:
        """Strikes of a request that matches: whether this one is struck."""
        if self.ended:
            return False
        self.matched += 1
        first = self._nth or 1
        times = self._times if self._times is not None else 1 if self._nth is not None else None
        if self.matched < first or (times is not None and self.struck >= times):
            return False
        if self._probability < 1 and self.random.random() >= self._probability:
            return False
        self.struck += 1
        return True

    def __repr__(self) -> str:
        return f"<Rule {self.fault}: {self.what}, {self.struck} of {self.matched} struck>"


def _is_one(text: str, patterns: Sequence[str] | None) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)
