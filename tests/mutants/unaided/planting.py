"""The registry of these mutants."""

from __future__ import annotations

from collections.abc import Callable

from tests.mutants.planting import Mutant, Plant

MUTANTS: dict[str, Mutant] = {}
"""By id, in the order in which they were written down."""
REALISTIC = "timing=realistic"


def mutant(part: str, name: str, *scenarios: str, survives: str = "") -> Callable[[Plant], Plant]:
    """``scenarios``: names of shipped scenarios that are searched first. ``survives``: why no check can find it."""

    def register(plant: Plant) -> Plant:
        assert name not in MUTANTS, f"a second mutant {name}"
        runs = tuple(f"{scenario} {REALISTIC}" for scenario in dict.fromkeys(scenarios))
        MUTANTS[name] = Mutant(name, part, plant, runs, survives=survives)
        return plant

    return register
