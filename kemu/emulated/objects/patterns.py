"""Go's regular expressions (``regexp``), by RE2, after which they are made: linear in time, no back references."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from kemu.emulated.objects.caches import text_cache

_SAYS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""What RE2 says in other words than Go."""
_WHOLE = ("missing )", "unexpected )")
"""Where Go shows the whole pattern."""


Regexp: TypeAlias = Any
"""A pattern of RE2."""


class BadPattern(ValueError):
    """The text is that of Go's ``regexp.Compile``."""


@text_cache(4096)
def compiled(pattern: str) -> Regexp:
    """An object with ``search`` and ``fullmatch``, as that of :mod:`re`. Raises :class:`BadPattern`."""
    import re2  # Loaded with the first pattern: few runs have one.

    options = re2.Options()
    options.log_errors = False
    try:
        found = re2.compile(pattern.encode("utf-8", "replace").decode(), options)
    except re2.error as error:
        text = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error.args[0])
        raise BadPattern(_as_go(text, pattern)) from None
    if re.search(r"(?<!\\)(\\\\)*\\C", pattern):
        raise BadPattern("error parsing regexp: invalid escape sequence: `\\C`")
    return found


def matches(pattern: str, text: str) -> bool:
    """Whether a part of the text matches (``MatchString``). Raises :class:`BadPattern`."""
    return compiled(pattern).search(text.encode("utf-8", "replace").decode()) is not None


def problem(pattern: str) -> str:
    """Why a pattern is none; empty: it is one."""
    try:
        compiled(pattern)
    except BadPattern as error:
        return str(error)
    return ""


def _as_go(text: str, pattern: str) -> str:
    if text.startswith("trailing \\"):
        return "error parsing regexp: trailing backslash at end of expression: ``"
    if text.startswith("pattern too large"):
        return f"error parsing regexp: expression too large: `{pattern}`"
    what, _, where = text.partition(": ")
    shown = pattern if what in _WHOLE else where
    return f"error parsing regexp: {_SAYS.get(what, what)}: `{shown}`"
