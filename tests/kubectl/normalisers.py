"""What two clusters cannot share is replaced in kubectl's texts; everything else has to be the same."""

from __future__ import annotations

import json
import re

_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UID"),
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
        (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}( [A-Z]{3})?", "TIME"),
        (r'(resourceVersion"?: ?"?)\d+', r"\1RV"),
        (r"(Resource Version: +)\d+", r"\1RV"),
        (r"\b(gen)-[bcdfghjklmnpqrstvwxz2456789]{5}\b", r"\1-NAME"),
        # Ages of what the script made, and of times that it wrote: 12s, 3m4s, 326d. Not 300s, 100m, or period=10s.
        (r"(?<![\w.=])(1?\d?\ds|\d{1,2}m\d{1,2}s|\d{1,2}m|\d+d(\d{1,2}h)?|<invalid>)(?![\w.=])", "AGE"),
        (r"https?://127\.0\.0\.1:\d+", "SERVER"),
        (r"127\.0\.0\.1:\d+", "SERVER"),
        (r"/tmp/[\w/.-]+", "FILE"),
        # kubectl's own log lines.
        (r"(?m)^[EIW]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ ([\w.]+:\d+\])", r"LOG \1"),
    )
)
_GAP = re.compile(r"[ \t]{2,}")
_END = re.compile(r"(?m)[ \t]+$")


def normalise(text: str) -> str:
    """``text`` without ages, times, UIDs, resource versions, generated names and addresses of servers.

    Gaps between columns and underlines depend on the widths of these; a gap becomes two spaces.
    """
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    lines: list[str] = []
    for line in _in_order(text.splitlines()):
        if line.startswith(("{", "[")):
            lines.append(_sorted(line))
            continue
        indent = line[: len(line) - len(line.lstrip(" "))]
        lines.append(indent + _GAP.sub("  ", line[len(indent) :]))
    return _END.sub("", "\n".join(lines))


def _in_order(lines: list[str]) -> list[str]:
    """``kubectl drain`` evicts pods at the same time: which one it names first is chance."""
    found: list[str] = []
    evicted: list[str] = []
    for line in lines:
        if line.startswith("evicting pod "):
            evicted.append(line)
        else:
            found += [*sorted(evicted), line]
            evicted = []
    return found + sorted(evicted)


def _sorted(line: str) -> str:
    """Of a document in JSON, the order of keys means nothing."""
    try:
        return json.dumps(json.loads(line), sort_keys=True)
    except ValueError:
        return line
