"""Clusters: the failures of a campaign, put together by check and cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kemu.lab.exploration.executions import Failure
from kemu.lab.exploration.results import RunRecord


@dataclass
class Cluster:
    """Failures of one check or expectation for one cause."""

    id: str
    """``<check>-<n>``: the n-th cause of that check that the campaign met."""
    check: str
    cause: str
    first: RunRecord
    """The first run that failed so: what is shown."""
    failure: Failure
    """Failure of the first run."""
    cheapest: RunRecord
    """The run with the fewest holds, the first of several: what is shrunk."""
    runs: list[int] = field(default_factory=list)
    strategies: dict[str, int] = field(default_factory=dict)
    """How many of these runs each strategy found."""


class Clusters:
    """Clusters of one campaign. Fed in the order of the runs."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str], Cluster] = {}
        self._causes: dict[str, int] = {}

    def add(self, record: RunRecord) -> list[Cluster]:
        """Returns the clusters that this run is the first of."""
        born = []
        for failure in _once(record.failures):
            key = failure.id, failure.cause
            cluster = self._by_key.get(key)
            if cluster is None:
                number = self._causes[failure.id] = self._causes.get(failure.id, 0) + 1
                cluster = Cluster(f"{failure.id}-{number}", failure.id, failure.cause, record, failure, record)
                self._by_key[key] = cluster
                born.append(cluster)
            elif len(record.holds) < len(cluster.cheapest.holds):
                cluster.cheapest = record
            cluster.runs.append(record.number)
            cluster.strategies[record.strategy] = cluster.strategies.get(record.strategy, 0) + 1
        return born

    def __iter__(self) -> Iterator[Cluster]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)


def _once(failures: Iterable[Failure]) -> list[Failure]:
    return list({(failure.id, failure.cause): failure for failure in failures}.values())
