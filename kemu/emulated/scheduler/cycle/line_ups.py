"""A line-up: the filters and scorers of a profile, all that deciding about nodes needs of it."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.scheduler.framework.interfaces import FilterPlugin, Scope, ScorePlugin


class LineUp:
    """Filters and scorers in the order in which they are asked. A filter's *place* is its index in ``filters``."""

    __slots__ = (
        "cluster_filters",
        "cluster_scorers",
        "filters",
        "local_filters",
        "local_scorers",
        "scorers",
        "weights",
    )

    def __init__(
        self, filters: Sequence[FilterPlugin], scorers: Sequence[ScorePlugin] = (), weights: Sequence[int] = ()
    ) -> None:
        self.filters = list(filters)
        self.scorers = list(scorers)
        self.weights = list(weights)
        """The weights of the scorers."""
        placed = list(enumerate(self.filters))
        self.local_filters = [(place, one) for place, one in placed if one.scope is not Scope.CLUSTER]
        """With their places: those whose verdict on a node depends on the template and the node alone."""
        self.cluster_filters = [(place, one) for place, one in placed if one.scope is Scope.CLUSTER]
        weighted = list(zip(self.scorers, self.weights, strict=True))
        self.local_scorers = [(one, weight) for one, weight in weighted if one.scope is not Scope.CLUSTER]
        """With their weights."""
        self.cluster_scorers = [(one, weight) for one, weight in weighted if one.scope is Scope.CLUSTER]
