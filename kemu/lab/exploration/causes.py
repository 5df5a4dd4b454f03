"""Causes: what a failure says when the particulars of its run are taken away.

Two runs fail for the same cause if the same check failed and its findings read the same after names, numbers and times
have been replaced: ``default/red-pod and default/blue-pod ran on node-1 at 5.502 s`` and the same sentence about two
other pods. Campaigns cluster failures by check and cause; shrinking keeps both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.lab.checks.history import History
from kemu.lab.scenario.scenarios import DEFAULT_SCHEDULER

_SEPARATOR = "; "
_MORE = re.compile(r"and \d+ more")
_ACTOR = re.compile(r"(?<![\w.\-])(scheduler|kubelet|apiserver|controller|extender)/[\w.\-]+(?:/\d+)?")
_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_NUMBER = re.compile(r"(?<![A-Za-z])-?\d+(?:\.\d+)?(?:e-?\d+)?")
_NUMBERS = re.compile(r"#(?:\s*(?:ns|us|µs|ms|s|m|h|Ki|Mi|Gi|Ti|k|M|G|%))?(?![\w#])")
_REPEATED = re.compile(r"(<\w+>|#)(?:(?:, | and )\1)+")
_WORDS = frozenset(("a", "an", "at", "by", "pod", "pods", "node", "nodes", "on", "the", "of", "to", "was", "is"))
"""Names that a text needs as words."""


def of_check(detail: str, names: Names) -> str:
    """The cause of a failed check: that of its first finding; how many more there are depends on the size of the
    run."""
    return names.taken_out(detail.split(_SEPARATOR, 1)[0])


def of_expectation(detail: str, names: Names) -> str:
    """The cause of a failed expectation, whose detail is one finding in several steps; equal steps count once."""
    steps = (names.taken_out(step) for step in detail.split(_SEPARATOR) if not _MORE.fullmatch(step))
    return _SEPARATOR.join(dict.fromkeys(steps))


class Names:
    """The names of the objects of a run, to be taken out of texts."""

    def __init__(self, document: Mapping[str, Any], history: History) -> None:
        kinds: dict[str, str] = {}
        for name in _named(document):
            kinds.setdefault(name, "<name>")
        for name, replicas in _schedulers(document):
            kinds[name] = "<scheduler>"
            kinds.update((f"{name}/{replica}", "<scheduler>") for replica in range(replicas))
        for name in history.nodes:
            kinds[name] = "<node>"
        for pod in history.pods.values():
            namespace, _, name = pod.key.partition("/")
            kinds.setdefault(namespace, "<name>")
            kinds[name] = kinds[pod.key] = "<pod>"
            kinds[pod.uid] = "<uid>"
        for key in history.claims.known():
            kinds[key] = kinds[key.partition("/")[2]] = "<claim>"
        self._kinds = {name: kind for name, kind in kinds.items() if name and name not in _WORDS}
        longest_first = sorted(self._kinds, key=lambda name: (-len(name), name))
        self._pattern = re.compile(rf"(?<![\w.\-/])(?:{'|'.join(map(re.escape, longest_first))})(?![\w\-/])")

    def taken_out(self, text: str) -> str:
        text = _ACTOR.sub(lambda match: f"<{match[1]}>", text)
        if self._kinds:
            text = self._pattern.sub(lambda match: self._kinds[match[0]], text)
        text = _UID.sub("<uid>", text)
        text = _NUMBERS.sub("#", _NUMBER.sub("#", text))
        return _REPEATED.sub(r"\1", text)


def _schedulers(document: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Names and replicas."""
    for scheduler in document.get("spec", {}).get("schedulers") or [{"name": DEFAULT_SCHEDULER}]:
        yield scheduler.get("name", DEFAULT_SCHEDULER), scheduler.get("replicas", 1)


def _named(data: Json) -> Iterator[str]:
    """Everything that a document calls a name."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if key in ("name", "namespace", "namePrefix", "generateName") and isinstance(value, str):
                yield value
            else:
                yield from _named(value)
            if key in ("names", "priorityClasses") and isinstance(value, Iterable):
                yield from (name for name in value if isinstance(name, str))
    elif isinstance(data, list):
        for item in data:
            yield from _named(item)
