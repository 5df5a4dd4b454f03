"""Randomised first fit, as every scheduler of the experiment places the tasks of a job on its copy of the cell.

The model and the scheduler on kemu share this code, so that they choose the same machines as long as they see the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from experiments.published.omega.java_random import JavaRandom


class Claim(NamedTuple):
    machine: int
    sequence: int
    """The machine's sequence number on the copy, own claims of this transaction included."""


class Placer:
    """One scheduler's chance and its pool of machines, which keeps the order in which an attempt leaves it."""

    def __init__(self, seed: int, machines: int) -> None:
        self._random = JavaRandom(seed)
        self._pool = list(range(machines))

    def place(self, tasks: int, room: list[int], sequences: list[int]) -> list[Claim]:
        """Claims for as many tasks as fit. ``room`` (tasks that still fit, by machine) and ``sequences`` are the copy:
        the claims are taken from it."""
        claims: list[Claim] = []
        pool, next_int = self._pool, self._random.next_int
        size = len(pool)
        while size and len(claims) < tasks:
            drawn = next_int(size)
            machine = pool[drawn]
            if room[machine] > 0:
                claims.append(Claim(machine, sequences[machine]))
                room[machine] -= 1
                sequences[machine] += 1
            else:
                size -= 1
                pool[drawn], pool[size] = pool[size], machine
        return claims


class Cell:
    """The state that all schedulers share: what commits are checked against."""

    def __init__(self, machines: int, room: int) -> None:
        self.room = [room] * machines
        self.sequences = [0] * machines

    def commit(self, claims: Sequence[Claim], *, coarse: bool, all_or_nothing: bool) -> tuple[list[Claim], int]:
        """The claims that pass, and how many conflict; of a transaction that is refused as a whole, all that were
        checked."""
        room, sequences = self.room, self.sequences
        passed: list[Claim] = []
        conflicts = 0
        for claim in claims:
            machine = claim.machine
            if sequences[machine] != claim.sequence if coarse else room[machine] < 1:
                conflicts += 1
                if all_or_nothing:
                    for other in passed:
                        room[other.machine] += 1
                    return [], conflicts + len(passed)
                continue
            room[machine] -= 1
            sequences[machine] += 1
            passed.append(claim)
        return passed, conflicts
