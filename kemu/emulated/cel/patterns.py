"""Regular expressions as Go's package regexp has them: RE2, in time linear in the text.

The engine is RE2 itself (google-re2), which is imported with the first expression that needs it. Errors are Go's: its parser
and RE2's have the same errors in different words.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kemu.emulated.cel.values import Error

_WORDS = {
    "invalid escape sequence": "invalid escape sequence",
    "invalid character class": "invalid character class",
    "invalid character class range": "invalid character class range",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid UTF-8": "invalid UTF-8",
    "invalid named capture group": "invalid named capture",
}
_WHOLE = ("missing ]", "missing )", "unexpected )")


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Any | Error:  # noqa: ANN401 - the library has no types
    """The compiled pattern, or the error that Go has for it (``error parsing regexp: …``)."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0]
        message = said.decode() if isinstance(said, bytes) else str(said)
    return Error(f"error parsing regexp: {_go_words(message, pattern)}")


def _go_words(message: str, pattern: str) -> str:
    for words, go in sorted(_WORDS.items(), key=lambda item: -len(item[0])):
        if message == words:
            return f"{go}: ``" if go.startswith("trailing") else f"{go}: `{pattern}`"
        if message.startswith(f"{words}: "):
            where = message[len(words) + 2 :]
            return f"{go}: `{pattern if words in _WHOLE[1:] else where}`"
    return message


def search(pattern: Any, text: str) -> Any:  # noqa: ANN401 - the library has no types
    """The leftmost match anywhere in `text`, or None."""
    return pattern.search(text)


def find_all(pattern: Any, text: str, limit: int) -> list[str]:  # noqa: ANN401 - the library has no types
    """The texts of at most `limit` matches that do not overlap (all, if it is negative), as Go finds them.

    An empty match right behind another match is left out.
    """
    found: list[str] = []
    at, last_end = 0, -1
    while at <= len(text) and (limit < 0 or len(found) < limit):
        match = pattern.search(text, at)
        if match is None:
            break
        start, end = match.span()
        if start != end or start != last_end:
            found.append(match.group())
        last_end = end
        at = end + 1 if end == start or end == at else end
        if end > start:
            at = end
    return found
