"""The table of fault kinds is complete."""

from __future__ import annotations

import string

from kemu.runtime.faults.kinds import KINDS

TOLD = [kind for kind in KINDS.values() if kind.name != "crash"]
"""Of which stories have the words from the table."""


def test_every_kind_says_when_it_begins_and_ends() -> None:
    assert [kind.name for kind in TOLD if not kind.begins] == []
    assert [kind.name for kind in TOLD if bool(kind.ends) != kind.lasts] == []


def test_no_two_kinds_say_the_same() -> None:
    assert len({kind.begins for kind in TOLD}) == len(TOLD)


def test_phrases_name_parameters_of_their_kind() -> None:
    for kind in TOLD:
        names = {one.name for one in kind.parameters}
        for phrase in (kind.begins, kind.ends):
            fields = [field for _, field, _, _ in string.Formatter().parse(phrase) if field]
            assert {field.partition("[")[0] for field in fields} <= names, (kind.name, phrase)


def test_what_happens_is_a_sentence() -> None:
    for kind in KINDS.values():
        for text in (kind.doc, *(one.doc for one in kind.parameters)):
            assert text[0].isupper(), (kind.name, text)
            assert text.endswith("."), (kind.name, text)
