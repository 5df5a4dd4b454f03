"""Cases from the expressions that stand in Go tests: ``python -m tests.cel.go_tests DIRECTORY … > cases.jsonl``.

Every string literal that looks like an expression is one; most of what is none is a case of a message. Variables have
values that let many of them run.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`([^`]*)`')
_VERB = re.compile(r"%[dsvqwT+]")
_DOCUMENT: dict[str, Any] = {
    "val1": 10,
    "val4": 1.5,
    "val5": "abc",
    "val7": True,
    "val8": [1, 2, 3],
    "val9": {"a": "b"},
    "name": "x",
    "items": [{"key": "a", "value": 1}, {"key": "b", "value": 2}],
    "list": ["a", "b"],
    "metadata": {"name": "foo"},
}
_VARIABLES: dict[str, Any] = {
    **dict.fromkeys(("self", "oldSelf", "object", "params"), _DOCUMENT),
    "request": {"operation": "CREATE", "userInfo": {"username": "a"}},
    "x": 3,
    "a": {"b": {"c": "d"}},
    "m": {"k": {"j": "v"}, "key": [1, 2]},
    "l": [1, 2, 3],
}
_LIBRARIES = ["bindings", "jsonpatch", "mutation", "authorizer"]


def _looks_like_one(text: str) -> bool:
    if not 5 <= len(text) <= 600 or text.count("\n") > 12 or "~" in text or "^#" in text:
        return False
    if text.startswith(("github.com", "k8s.io/", "ERROR", "_", "google.golang")) or not re.search(r"[=(\[.<>+]", text):
        return False
    if _VERB.search(text) and "format" not in text:
        return False
    return "(" in text or not re.fullmatch(r"[\w ./:'-]+", text)


def expressions(directories: list[str]) -> Iterator[str]:
    """The literals of all Go tests below the directories, once each."""
    seen: set[str] = set()
    for path in sorted(file for directory in directories for file in Path(directory).rglob("*_test.go")):
        for quoted, raw in _LITERAL.findall(path.read_text()):
            try:
                text = raw or json.loads('"' + quoted.replace("\\'", "'") + '"')
            except ValueError:
                continue
            text = text.strip()
            if text not in seen and _looks_like_one(text):
                seen.add(text)
                yield text


if __name__ == "__main__":
    for expression in expressions(sys.argv[1:]):
        case = {"expression": expression, "variables": _VARIABLES, "libraries": _LIBRARIES}
        print(json.dumps({"case": case}, ensure_ascii=False, separators=(",", ":")))
