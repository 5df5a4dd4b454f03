"""One mistake is reported once: which problems only follow from others, and how the list of all is told.

Role: used by :mod:`kemu.lab.scenario.loading.references`, which leaves out what follows from a mistake elsewhere, and
by
:mod:`kemu.lab.scenario.loading.loader` for the list.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.shapes import THERE_ARE
from kemu.errors import Problem
from kemu.runtime import words

_OF_A_SECTION = re.compile(r"spec\.(\w+)(?:\[(\d+)\])?(?:\.[\w-]+)?(?:\.value)?")
"""Where a mistake can keep a whole item of the section from being read: at the item, or at one of its keys."""
OVERRIDE = "--set"
"""The beginning of what stands in place of a file where a value comes from the command line."""
_NAMING = ("name", "namePrefix", "id")
_MEANT = re.compile(r"did you mean (\w+)\?")


class Excuses:
    """Why a name may be missing although the scenario states it: mistakes in the section that should declare it."""

    def __init__(self, problems: Iterable[Problem], file: str, spec: Mapping[str, Any]) -> None:
        """``problems``: those known by now. ``spec``: as its author wrote it."""
        self._words: dict[str, set[str]] = {}
        """By section with mistakes: the names in the items that have them."""
        self._unread: set[str] = set()
        """Sections of which a file could not be read."""
        for problem in problems:
            is_own = problem.file == file or problem.file.startswith(f"{OVERRIDE} ")
            section = _OF_A_SECTION.fullmatch(problem.path) if is_own else None
            if not is_own or (section is not None and problem.path.endswith(".file")):
                self._unread.add(section[1] if section is not None else "manifests")
            elif section is not None:
                meant = _MEANT.search(problem.suggestion) if problem.path == f"spec.{section[1]}" else None
                found = spec.get(section[1])
                if section[2] and isinstance(found, list):
                    found = dict(enumerate(found)).get(int(section[2]))  # a list of another file may be longer
                self._words.setdefault(meant[1] if meant else section[1], set()).update(_names(found))

    def cover(self, name: str, sections: Iterable[str], known: Collection[str]) -> bool:
        """Whether a mistake in one of these sections may be why ``name`` is not among the ``known`` ones."""
        stem = name.rpartition("-")[0]
        for section in sections:
            words = self._words.get(section)
            if section in self._unread or (words is not None and (not known or name in words or stem in words)):
                return True
        return False


def _names(value: Json) -> Iterable[str]:
    """What may be meant to be a name: keys, and the texts of keys that name something."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield key
            if isinstance(each, Mapping | list) or words.nearest_word(key, _NAMING):
                yield from _names(each)
    elif isinstance(value, list):
        for each in value:
            yield from _names(each)
    elif isinstance(value, str):
        yield value


def in_order(problems: Iterable[Problem], file: str) -> list[Problem]:
    """Every problem once, the scenario's own before those of other files, by their places.

    A list of all keys that may stand somewhere is a suggestion of the first problem that needs it.
    """
    unique = dict.fromkeys(problems)
    found = sorted(unique, key=lambda problem: (problem.file != file, problem.file, problem.line, problem.column))
    told: set[str] = set()
    for number, problem in enumerate(found):
        hint = problem.suggestion
        if hint.startswith(THERE_ARE):
            if hint in told:
                found[number] = Problem(problem.file, problem.line, problem.column, problem.path, problem.message)
            told.add(hint)
    return list(dict.fromkeys(found))
