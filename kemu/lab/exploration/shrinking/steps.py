"""The smallest scenario so far, and the steps by which shrinking goes on from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kemu.lab.exploration.shrinking import documents, subsets, trials
from kemu.lab.exploration.shrinking.candidates import Candidate, Data, Loading
from kemu.runtime.runlog.frames import Entry

T = TypeVar("T")


class Steps:
    """Each step keeps the failure, or leaves everything as it is."""

    def __init__(self, asked: trials.Trials, loading: Loading, begin: Candidate) -> None:
        self.trials = asked
        self.best = begin
        """The smallest that fails in the same way."""
        self.loading = loading
        self.keeps_plot = False
        """No run goes well, so nothing tells whether an expectation fails because of a bug, or because what it expects
        has gone. What happens in the scenario stays: faults, all events but those that create pods, the time."""

    def events(self) -> list[Entry]:
        """Events of the run of the best."""
        return self.trials.log(self.best)

    def take(self, candidates: Iterable[Candidate | None]) -> int | None:
        """Go on with the first that fails in the same way; its place."""
        found = self.trials.first(candidates)
        if found is None:
            return None
        index, self.best = found
        return index

    def take_data(self, *changed: Data | None) -> bool:
        made = [None if data is None else self.loading.candidate(data, self.best.holds) for data in changed]
        return self.take(made) is not None

    def minimise(self, things: Sequence[T], made: Callable[[Sequence[T]], Candidate | None], **options: int) -> None:
        """Go on with as few of the things as are enough."""

        def first(lists: list[list[T]]) -> int | None:
            return self.take(made(each) for each in lists)

        def ahead(lists: list[list[T]]) -> None:
            self.trials.run_ahead(made(each) for each in lists)

        is_alone = self.trials.runner.jobs == 1
        subsets.minimal(things, first, ahead=None if is_alone else ahead, **options)

    def with_items(self, data: Data, kept: Sequence[documents.Item], *sections: str) -> Candidate | None:
        return self.loading.candidate(documents.keeping(data, kept, *sections), self.best.holds)

    def hold_list(self, **options: int) -> None:
        if not self.best.holds:
            return
        best = self.best
        self.minimise(best.holds, best.with_holds, **options)
