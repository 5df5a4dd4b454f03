"""The cost model: how much virtual time a scheduler's work takes.

``timing.schedulingCycle`` is a value or distribution for a whole attempt, or ``{base, perNode, perEvaluation}`` where
``perNode`` counts each node that was tried and ``perEvaluation`` each set of pods that a search of the experiment
switches (:mod:`kemu.emulated.scheduler.experiments.searches`) tried on a node; ``timing.bind`` is what a binding takes
before its API call. In seconds.

The defaults are fitted to kube-scheduler v1.36 in process: 0.7 ms a cycle at 1,000 nodes and 1.0 ms at 5,000 with
sampling, 7.4 ms at 5,000 nodes without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.runtime import distributions
from kemu.runtime.distributions import Distribution
from kemu.runtime.env import Env, Random

DEFAULT_BASE_S = 0.0003
DEFAULT_PER_NODE_S = 0.0000014
DEFAULT_PER_EVALUATION_S = 0.00002
"""One run of the filters on one node alone; ``perNode`` takes into account that kube-scheduler checks 16 nodes at a
time."""


class Timing:
    """Draws durations in seconds."""

    __slots__ = ("_base", "_bind", "_per_evaluation", "_per_node")

    def __init__(self, timing: Mapping[str, Any]) -> None:
        """Raises ``distributions.DistributionError``."""
        cycle = timing.get("schedulingCycle")
        self._base: Distribution
        self._per_node: Distribution
        parts: Mapping[str, Any] = {}
        if cycle is None or (isinstance(cycle, Mapping) and not set(cycle) - {"base", "perNode", "perEvaluation"}):
            parts = cycle or {}
            self._base = distributions.parse(parts.get("base", DEFAULT_BASE_S))
            self._per_node = distributions.parse(parts.get("perNode", DEFAULT_PER_NODE_S))
        else:
            self._base, self._per_node = distributions.parse(cycle), distributions.parse(0)
        self._per_evaluation = distributions.parse(parts.get("perEvaluation", DEFAULT_PER_EVALUATION_S))
        self._bind = distributions.parse(timing.get("bind", 0))

    def cycle_s(self, env: Env, nodes: int) -> float:
        """The duration of an attempt that tried this many nodes."""
        base, per_node = self._base.constant, self._per_node.constant
        if base is not None and per_node is not None:
            return base + per_node * nodes
        rng = env.random
        return self._base.draw(rng) + self._per_node.draw(rng) * nodes

    def evaluations_s(self, rng: Random, evaluations: int) -> float:
        """The duration of this many evaluations of a search."""
        return self._per_evaluation.draw(rng) * evaluations

    def bind_s(self, env: Env) -> float:
        constant = self._bind.constant
        return constant if constant is not None else self._bind.draw(env.random)
