"""Searching for a failure, and shrinking it to the holds that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kemu.doors.testing import repetitions, runnables, tapes
from kemu.doors.testing.runnables import Outcome
from kemu.doors.testing.tapes import Tape
from kemu.errors import KemuError
from kemu.runtime.holds import EventPattern, Hold, Label, MessagePattern

TEST = "tests/test_it.py::test_it"


def hold(number: int) -> Hold:
    pattern = MessagePattern("apiserver/0", "scheduler/red/0", Label("Pod", f"pod-{number}", "bound"), number + 1)
    return Hold(pattern, EventPattern("scheduler/red/0", "bound", "red-pod"), 10_000_000_000)


@dataclass
class Toy:
    """Fails if all of ``needed`` are held."""

    needed: tuple[int, ...]
    holds: tuple[Hold, ...] = tuple(hold(number) for number in range(20))
    fails_from: int = 1
    asked: list[int] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    today: tuple[Hold, ...] | None = None
    """With what the inputs of today run in place of the holds of a tape."""

    def anew(self, tape: Tape) -> Tape | None:
        return None if self.today is None else tape.with_only(self.today)

    def runs(self, count: int, names: Sequence[str], seed: int) -> Iterator[tuple[str, Outcome]]:
        for number in range(1, count + 1):
            self.asked.append(number)
            yield "toy", self._outcome(self.holds) if number >= self.fails_from else Outcome(seed)

    def play(self, tape: Tape) -> Outcome:
        return self._outcome(tape.holds)

    def shrink(self, outcome: Outcome) -> tuple[Outcome, int]:
        return runnables.fewest_holds(self, outcome)

    def _outcome(self, holds: tuple[Hold, ...]) -> Outcome:
        if not all(hold(number) in holds for number in self.needed):
            return Outcome(7)
        return Outcome(7, ("check", "cause"), text="it fails", holds=holds)


@pytest.mark.parametrize("needed", [(), (0,), (19,), (3, 11), (2, 3, 4), (0, 5, 10, 15, 19)])
def test_what_is_shrunk_needs_every_hold_that_is_left(needed: tuple[int, ...], tmp_path: Path) -> None:
    toy = Toy(needed)
    found = repetitions.search(toy, tapes.Shelf(tmp_path), TEST, repetitions.Settings(shrink=True))
    assert isinstance(found, repetitions.Found)
    assert found.outcome.holds == tuple(hold(number) for number in needed)
    assert found.executions <= 150
    assert tapes.Shelf(tmp_path).of(TEST)[0].holds == found.outcome.holds


def test_the_first_failure_ends_the_search_and_is_the_first_to_run_again(tmp_path: Path) -> None:
    shelf, settings = tapes.Shelf(tmp_path), repetitions.Settings(runs=10)
    toy = Toy((), fails_from=4)
    found = repetitions.search(toy, shelf, TEST, settings)
    assert isinstance(found, repetitions.Found)
    assert (found.number, len(toy.asked), found.strategy) == (4, 4, "toy")
    again = repetitions.search(Toy((), fails_from=99), shelf, TEST, settings)
    assert isinstance(again, repetitions.Found)
    assert (again.number, again.tape.seed) == (0, 7)


def test_a_tape_that_no_longer_fails_is_removed(tmp_path: Path) -> None:
    shelf = tapes.Shelf(tmp_path)
    repetitions.search(Toy(()), shelf, TEST, repetitions.Settings())
    assert shelf.has(TEST)
    assert isinstance(repetitions.search(Toy((99,)), shelf, TEST, repetitions.Settings()), Outcome)
    assert not shelf.has(TEST)


def test_tests_of_one_name_in_two_files_have_tapes_of_their_own(tmp_path: Path) -> None:
    shelf = tapes.Shelf(tmp_path)
    shelf.put(Tape("a/test_it.py::test_it", None, 1))
    assert not shelf.has("b/test_it.py::test_it")
    assert [tape.test for tape in shelf.of("a/test_it.py::test_it")] == ["a/test_it.py::test_it"]


def test_what_is_no_tape_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("kind: Pod\n")
    with pytest.raises(KemuError, match="is no tape of a test"):
        tapes.read(tmp_path / "x.yaml")


def kept(shelf: tapes.Shelf, toy: Toy) -> None:
    found = repetitions.search(toy, shelf, TEST, repetitions.Settings())
    assert isinstance(found, repetitions.Found)
    assert shelf.of(TEST)[0].inputs == toy.inputs


def test_a_stored_failure_says_that_its_inputs_have_changed_and_runs_both(tmp_path: Path) -> None:
    shelf = tapes.Shelf(tmp_path)
    toy = Toy((3,), inputs={"nodes": "a", "workloads": "b"})
    kept(shelf, toy)
    toy.inputs, toy.today = {"nodes": "a", "workloads": "c", "chaos": "d"}, toy.holds
    found = repetitions.search(toy, shelf, TEST, repetitions.Settings())
    assert isinstance(found, repetitions.Found)
    assert found.said == (
        "its inputs have changed since it failed (workloads and chaos): it fails with those of then, and fails with "
        "those of today, in the same way"
    )


def test_a_failure_of_former_inputs_alone_fails_no_test_and_is_told(tmp_path: Path) -> None:
    shelf = tapes.Shelf(tmp_path)
    toy = Toy((3,), inputs={"nodes": "a"})
    kept(shelf, toy)
    toy.inputs, toy.today, toy.fails_from = {"nodes": "b"}, (), 2
    told: list[str] = []
    found = repetitions.search(toy, shelf, TEST, repetitions.Settings(), told.append)
    said = "it fails with those of then, and passes with those of today"
    assert told == [f"a stored failure: its inputs have changed since it failed (nodes): {said}"]
    assert isinstance(found, Outcome)
    assert shelf.of(TEST) == []


def test_a_tape_without_its_inputs_is_run_as_it_is(tmp_path: Path) -> None:
    shelf = tapes.Shelf(tmp_path)
    shelf.put(Tape(TEST, None, 7, (hold(3),)))
    found = repetitions.search(Toy((3,), inputs={"nodes": "b"}, today=()), shelf, TEST, repetitions.Settings())
    assert isinstance(found, repetitions.Found)
    assert found.said == ""
