"""What a run gives, from the model and from kemu alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from experiments.published.omega.configurations import Configuration


class Transaction(NamedTuple):
    scheduler: str
    scheduler_class: str
    job: int
    """Its place in the list, from 0."""
    ended_s: float
    decision_s: float
    machines: tuple[int, ...]
    """Of the claims, in the order in which they were made; empty: an attempt without any claim."""
    placed: int
    """Claims committed."""
    conflicts: int
    """Claims refused or rolled back; those of an all-or-nothing transaction that were never checked do not count."""


@dataclass
class Outcome:
    """What a run gives, from the model or from kemu."""

    configuration: Configuration
    length_s: float
    transactions: list[Transaction]
    """Those that ended in the run, in the order in which they ended."""
    waits_s: dict[str, list[float]]
    """By class, for each job whose first attempt has ended."""
    utilisation: float
    unfinished: dict[str, int]
    """By class: jobs with tasks left at the end."""
