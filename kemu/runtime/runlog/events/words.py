"""The words of events: declared with each class, arranged by what tells them (:mod:`kemu.lab.tell`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

GOOD, BAD, PLAIN = "good", "bad", "plain"
DECISION, OUTCOME, WRITE, USUAL = 5, 4, 2, 1
"""Weights: what an actor decided; what came of it; what was written; what every pod goes through."""


class Told(NamedTuple):
    """A line of a cluster that runs. Templates name fields."""

    group: str
    """Lines of one group that come together share one."""
    one: str
    """What is said of the pod or node that the event is about: ``runs on {node}``."""
    many: str
    """The same of several, with their noun: ``pods run``."""
    tone: str = PLAIN


EVICTED = Told("evicted", "is evicted from {node}", "pods are evicted", BAD)


class Deed(NamedTuple):
    """A step of an explanation. Templates name fields, and ``{pod}`` as the explanation calls it."""

    text: str
    """After the actor, in the past tense: ``evicted {pod} ({signal})``."""
    short: str
    """For a picture, beside the line of the actor."""
    weight: int


class Blank(dict[str, Any]):
    """For ``format_map``: a field that an event lacks is empty."""

    def __missing__(self, key: str) -> str:
        return ""


def filled(template: str, event: Mapping[str, Any], **more: str) -> str:
    """With the fields of the event."""
    return template.format_map(Blank(event, **more))
