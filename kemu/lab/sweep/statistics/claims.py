"""The syntax of claims: ``waiting.p99_s(queue=fifo) > 3 * waiting.p99_s(queue=priority)``.

A claim compares two terms with ``<``, ``<=``, ``>`` or ``>=``. A term is ``number * metric(key=value, …)``, or a number
alone. A key is the last part of a varied path, or the whole path in quotes; ``priority=1000`` chooses the pods of one
priority, of the metrics that are told by priority. A term speaks of the variants that have all of its values: of
several, of their mean. Neighbour: :mod:`judging` judges claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kemu.lab.scenario.loading import references
from kemu.lab.scenario.playing.runner import plain
from kemu.lab.sweep.cells import Json, Metric
from kemu.lab.sweep.results import tables
from kemu.runtime.words import did_you_mean

CONFIDENCE = 0.95
"""Where a claim states none."""
SIGNS = ("<=", ">=", "<", ">")
PRIORITY = "priority"

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<quoted>"[^"]*"|'[^']*')
  | (?P<sign><=|>=|<|>)
  | (?P<mark>[(),=*])
  | (?P<word>[^\s(),=*<>"']+)
  )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Term:
    factor: float
    """Factor of the metric; of a term without a metric, the number itself."""
    metric: Metric | None
    variant: Mapping[str, Json]
    """Path → value, for the paths that the term names."""

    @property
    def text(self) -> str:
        """Without the factor."""
        if self.metric is None:
            return f"{self.factor:g}"
        named = {tables.last_part(path): value for path, value in self.variant.items()}
        pairs = [f"{key}={plain(value)}" for key, value in named.items()]
        if self.metric.priority is not None:
            pairs.append(f"{PRIORITY}={self.metric.priority}")
        return self.metric.name + (f"({', '.join(pairs)})" if pairs else "")


@dataclass(frozen=True, slots=True)
class Claim:
    id: str
    says: str
    """As its author wrote it."""
    left: Term
    sign: str
    """One of :data:`SIGNS`."""
    right: Term
    confidence: float = CONFIDENCE


def parse(says: str, vary: Mapping[str, Sequence[Json]], *, name: str = "", confidence: float = CONFIDENCE) -> Claim:
    """``vary``: the values of each varied path; ``name``: the id of the claim.

    Raises ValueError with what is wrong, and the nearest that is right.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, as 0.95; not {confidence:g}")
    tokens = _Tokens(says)
    left = _term(tokens, vary)
    kind, sign = tokens.take()
    if kind != "sign":
        raise ValueError(f"a claim compares two terms with {', '.join(SIGNS)}; {tokens.here} instead")
    right = _term(tokens, vary)
    if tokens.peek()[0]:
        tokens.take()
        raise ValueError(f"the claim should end before {tokens.here}")
    if left.metric is None and right.metric is None:
        raise ValueError("a claim is about a metric; both of its terms are numbers")
    return Claim(name or says, says, left, sign, right, confidence)


class _Tokens:
    def __init__(self, text: str) -> None:
        self._tokens = list(self._split(text))
        self._next = 0

    @staticmethod
    def _split(text: str) -> Iterator[tuple[str, str]]:
        end, stripped = 0, text.rstrip()
        while end < len(stripped):
            match = _TOKEN.match(stripped, end)
            if match is None:
                raise ValueError(f"a quote that does not end: {stripped[end:].strip()}")
            kind = str(match.lastgroup)
            yield kind, match[kind].strip("\"'") if kind == "quoted" else match[kind]
            end = match.end()

    def peek(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("", "")

    def take(self) -> tuple[str, str]:
        """The next one: its kind, and its text."""
        found = self.peek()
        self._next += 1
        return found

    def is_next(self, mark: str) -> bool:
        """And take it, if it is."""
        if self.peek() != ("mark", mark):
            return False
        self._next += 1
        return True

    @property
    def here(self) -> str:
        """The token that was taken last, for complaints."""
        place = self._next - 1
        return f"there is {self._tokens[place][1]!r}" if place < len(self._tokens) else "the text ends"


def _term(tokens: _Tokens, vary: Mapping[str, Sequence[Json]]) -> Term:
    kind, word = tokens.take()
    if kind != "word":
        raise ValueError(f"a term begins with a number or a metric; {tokens.here} instead")
    factor = _number(word)
    if factor is not None:
        if not tokens.is_next("*"):
            return Term(factor, None, {})
        if factor <= 0:
            raise ValueError(f"a factor is positive, not {word}")
        kind, word = tokens.take()
        if kind != "word" or _number(word) is not None:
            raise ValueError(f"a metric stands behind the factor; {tokens.here} instead")
    priority, variant = None, {}
    for key, value in _pairs(tokens):
        if key == PRIORITY and _path_of(key, vary) is None:
            priority = _whole(value)
        else:
            path = _path_of(key, vary)
            if path is None:
                raise ValueError(f"nothing that varies is called {key}{_hint(key, _keys(vary))}")
            variant[path] = _value_of(value, key, vary[path])
    _check_metric(word, priority)
    return Term(1.0 if factor is None else factor, Metric(word, priority), variant)


def _pairs(tokens: _Tokens) -> Iterator[tuple[str, str]]:
    if not tokens.is_next("(") or tokens.is_next(")"):
        return
    while True:
        kind, key = tokens.take()
        if kind not in ("word", "quoted"):
            raise ValueError(f"key=value stands in the brackets; {tokens.here} instead")
        if not tokens.is_next("="):
            tokens.take()
            raise ValueError(f"{key} needs a value, as {key}=value; {tokens.here} instead")
        kind, value = tokens.take()
        if kind not in ("word", "quoted"):
            raise ValueError(f"{key} needs a value; {tokens.here} instead")
        yield key, value
        if tokens.is_next(")"):
            return
        if not tokens.is_next(","):
            tokens.take()
            raise ValueError(f"',' or ')' stands behind {key}={value}; {tokens.here} instead")


def _path_of(key: str, vary: Mapping[str, Sequence[Json]]) -> str | None:
    """None: nothing that varies is called so. Raises ValueError where several are."""
    if key in vary:
        return key
    found = [path for path in vary if tables.last_part(path) == key]
    if len(found) > 1:
        raise ValueError(f"{key} could be {' or '.join(found)}: write the whole path, in quotes")
    return found[0] if found else None


def _keys(vary: Mapping[str, Sequence[Json]]) -> list[str]:
    lasts = [tables.last_part(path) for path in vary]
    return [last if lasts.count(last) == 1 else f'"{path}"' for path, last in zip(vary, lasts, strict=True)]


def _value_of(text: str, key: str, values: Sequence[Json]) -> Json:
    """The one that is written so."""
    for value in values:
        if text == plain(value) or (isinstance(value, bool) and text == str(value).lower()):
            return value
    number = _number(text)
    for value in values:
        if number is not None and not isinstance(value, bool) and isinstance(value, int | float) and value == number:
            return value
    told = ", ".join(plain(value) for value in values)
    raise ValueError(f"{key} is never {text}: its values are {told}")


def _check_metric(name: str, priority: int | None) -> None:
    _, message, hint = references.metric_complaint(name, priority)
    if message:
        raise ValueError(f"{message}; {hint}" if hint else message)


def _hint(word: str, known: Sequence[str]) -> str:
    hint = did_you_mean(word, known) or (f"there are {', '.join(known)}" if known else "nothing varies")
    return f"; {hint}"


def _number(text: str) -> float | None:
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.IGNORECASE | re.ASCII):
        return None
    return float(text)


def _whole(text: str) -> int:
    if not re.fullmatch(r"-?\d+", text, re.ASCII):
        raise ValueError(f"{PRIORITY} is a whole number, not {text}")
    return int(text)
