"""Words of messages: counted nouns, and the known words most like one that is not known."""

from __future__ import annotations

import re
from collections.abc import Iterable

LIKE = 0.6
"""Likeness (``difflib``) from which on a key or a word was probably meant."""
ALIKE = 0.5
"""The same of names that a user chose, of which several may be shown."""
STEERING = r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]|\r(?!\n)|\x1b(?!\[[0-9;]*m)"
"""What a terminal does not show but obeys, but for colours."""
_STEERING = re.compile(STEERING)


def harmless(text: str, steering: re.Pattern[str] = _STEERING) -> str:
    """With ``\\u001b``, as in JSON, for what moves the cursor, erases, or names the window."""
    return steering.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def nearest(word: str, known: Iterable[str], count: int = 1, likeness: float = LIKE) -> list[str]:
    """At most ``count`` of the known words, the most similar first, whatever their case."""
    import difflib  # costs little, but most runs have no mistakes

    lower = {candidate.lower(): candidate for candidate in reversed(list(known))}
    # In the order of the known words: of several that are equally similar, difflib shows the greater one first.
    found = difflib.get_close_matches(word.lower(), list(lower), count, likeness)
    return [lower[each] for each in found]


def nearest_word(word: str, known: Iterable[str], likeness: float = LIKE) -> str:
    """The one most like it, or an empty text."""
    return next(iter(nearest(word, known, 1, likeness)), "")


def did_you_mean(word: str, known: Iterable[str], quote: str = "") -> str:
    """``did you mean x?``, or an empty text."""
    found = nearest_word(word, known)
    return f"did you mean {quote}{found}{quote}?" if found else ""


def counted(number: int, one: str, many: str = "") -> str:
    """``1 pod``, ``2 pods``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def short(name: str) -> str:
    """Without the namespace ``default``."""
    return name.removeprefix("default/")


def listed(items: Iterable[str], limit: int = 3) -> str:
    """``a, b and c``."""
    names = list(items)
    if len(names) > limit:
        names = [*names[: limit - 1], f"{len(names) - limit + 1} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
