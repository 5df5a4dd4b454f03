"""Judges claims: ``holds``, ``fails``, or ``undecided`` and about how many more seeds would decide.

A claim is about means over seeds. All variants of a seed have the same arrivals and draws (common random numbers), so
the two terms are compared seed by seed, and the interval is that of the mean of their differences. A claim holds if the
whole interval is on its side, and fails if the whole interval is on the other side.

A figure that is known only as at least and at most counts as whichever is worse for what is to be shown: ``A > B`` may
hold where A is only a lower bound, and cannot where B is, unless that is so in very few seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from kemu.lab.sweep.cells import CellRecord
from kemu.lab.sweep.statistics import intervals, samples
from kemu.lab.sweep.statistics.claims import Claim, Term
from kemu.lab.sweep.statistics.intervals import Interval
from kemu.lab.sweep.statistics.samples import Figure, Sample
from kemu.runtime.words import counted

HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
MOST_INEXACT = 0.05
"""The share of seeds without a figure up to which the others decide; and of those in which it is only a lower bound, or
missing, up to which lower bounds are taken as they are."""
POWER = 0.8
"""The chance that a further sweep decides, for which the number of seeds is told."""
MOST_SEEDS = 100_000
"""More are as good as none that would decide."""


@dataclass(frozen=True, slots=True)
class Side:
    """One term of a claim, over the seeds that have both."""

    text: str
    mean: float
    """Without the factor."""
    lower_bounds: int
    """In how many seeds it is only a lower bound."""
    seeds: int
    is_settled: bool
    """So few that they are taken for the figure itself."""
    unit: str

    @property
    def is_lower_bound(self) -> bool:
        return self.lower_bounds > 0 and not self.is_settled


@dataclass(frozen=True, slots=True)
class Judgement:
    claim: Claim
    outcome: str
    """:data:`HOLDS`, :data:`FAILS` or :data:`UNDECIDED`."""
    detail: str
    """In one sentence: the figures, or why they do not decide."""
    more_seeds: int | None = None
    """More seeds of an undecided claim: about how many more would decide; None: seeds do not help."""
    seeds: int = 0
    """How many were compared."""
    missing: int = 0
    """How many have no figure for one of the terms."""
    left: Side | None = None
    right: Side | None = None
    difference: Interval | None = None
    """The interval of left term - right term, factors included; a side that is infinite is not known."""
    ratio: Interval | None = None
    """Ratio of the metric on the left to that on the right, without factors; None where it has no meaning or is not
    known."""
    share: Interval | None = None
    """The share of seeds for which the claim holds by itself."""
    effect: float | None = None
    """Mean of the differences by their standard deviation (Cohen's d for pairs); None where they are all the same."""

    @property
    def text(self) -> str:
        """``undecided (needs about 40 more seeds)``"""
        if not self.more_seeds:
            return self.outcome
        return f"{self.outcome} (needs about {counted(self.more_seeds, 'more seed')})"

    def data(self) -> Mapping[str, Any]:
        """For ``--json``; what is not known is null."""
        return {
            "id": self.claim.id,
            "says": self.claim.says,
            "confidence": self.claim.confidence,
            "outcome": self.outcome,
            "detail": self.detail,
            "more_seeds": self.more_seeds,
            "seeds": self.seeds,
            "missing": self.missing,
            "left": _side_data(self.left),
            "right": _side_data(self.right),
            "difference": self.difference.data() if self.difference is not None else None,
            "ratio": self.ratio.data() if self.ratio is not None else None,
            "share": self.share.data() if self.share is not None else None,
            "effect": self.effect,
        }


def judge(claims: Sequence[Claim], records: Iterable[CellRecord]) -> list[Judgement]:
    """In the order of the claims. The same records give the same judgements, whatever their order."""
    found = list(records)
    return [_judge(claim, found) for claim in claims]


def overall(judgements: Iterable[Judgement]) -> str:
    """``fails`` before ``undecided`` before ``holds``."""
    outcomes = [each.outcome for each in judgements]
    return next((outcome for outcome in (FAILS, UNDECIDED) if outcome in outcomes), HOLDS)


def least_seeds(confidence: float) -> int:
    """With fewer, not even a claim that holds in every seed is certain enough by the sign test."""
    return math.ceil(1 - math.log2(1 - confidence) - 1e-9)


def _judge(claim: Claim, records: Sequence[CellRecord]) -> Judgement:
    left, right = (_sample(term, records) for term in (claim.left, claim.right))
    seeds = [seed for seed in _seeds(left, right) if _has(left, seed) and _has(right, seed)]
    missing = len(_seeds(left, right)) - len(seeds)
    if not seeds:
        terms = [term.text for term, sample in zip(_terms(claim), (left, right), strict=True) if _is_empty(sample)]
        detail = f"no run has a figure for {' and '.join(terms)}" if terms else "no seed has a figure for both terms"
        return Judgement(claim, UNDECIDED, detail, missing=missing)
    return _compare(claim, [(_figure(claim.left, left, s), _figure(claim.right, right, s)) for s in seeds], missing)


def _terms(claim: Claim) -> tuple[Term, Term]:
    return claim.left, claim.right


def _sample(term: Term, records: Sequence[CellRecord]) -> Sample | None:
    """None: the term is a number."""
    return None if term.metric is None else samples.of(records, term.metric, term.variant)


def _seeds(*found: Sample | None) -> list[int]:
    """That were run for one of them."""
    return sorted({seed for sample in found if sample is not None for seed in (*sample.figures, *sample.missing)})


def _has(sample: Sample | None, seed: int) -> bool:
    return sample is None or seed in sample.figures


def _is_empty(sample: Sample | None) -> bool:
    return sample is not None and not sample.figures


def _figure(term: Term, sample: Sample | None, seed: int) -> Figure:
    return Figure(term.factor, term.factor) if sample is None else sample.figures[seed]


# One claim ----------------------------------------------------------------------------------------------------------


def _compare(claim: Claim, pairs: Sequence[tuple[Figure, Figure]], missing: int) -> Judgement:
    sides = [_side(term, [pair[place] for pair in pairs], missing) for place, term in enumerate(_terms(claim))]
    pairs = [(_settled(left, sides[0]), _settled(right, sides[1])) for left, right in pairs]
    factors = [1.0 if term.metric is None else term.factor for term in _terms(claim)]
    # Left - right, as low and as high as they may be.
    lows = [factors[0] * left.least - factors[1] * right.most for left, right in pairs]
    highs = [factors[0] * left.most - factors[1] * right.least for left, right in pairs]
    low, high = _mean_of(lows, claim.confidence), _mean_of(highs, claim.confidence)
    middle = math.fsum(factors[0] * left.least - factors[1] * right.least for left, right in pairs) / len(pairs)
    difference = Interval(middle, low.low, high.high, claim.confidence, len(pairs))
    ratio = _ratio(claim, pairs)
    outcome, more, why = _decided(claim, sides, lows, highs, difference, missing)
    kept = sum(_keeps(claim.sign, each) for each in (lows if claim.sign.startswith(">") else highs))
    are_known = len(pairs) > 1 and not any(figure.is_open for pair in pairs for figure in pair)
    spread = (
        float(np.std([(low + high) / 2 for low, high in zip(lows, highs, strict=True)], ddof=1)) if are_known else 0.0
    )
    return Judgement(
        claim,
        outcome,
        "; ".join([_figures(claim, sides, difference, ratio), *_taken(sides), *([why] if why else [])]),
        more,
        len(pairs),
        missing,
        sides[0],
        sides[1],
        difference,
        ratio,
        intervals.of_share(kept, len(pairs), claim.confidence),
        middle / spread if spread else None,
    )


def _side(term: Term, figures: Sequence[Figure], missing: int) -> Side:
    bounds = sum(figure.is_open for figure in figures)
    return Side(
        term.text,
        math.fsum(figure.least for figure in figures) / len(figures),
        bounds,
        len(figures),
        bounds + missing <= MOST_INEXACT * (len(figures) + missing),
        " s" if term.metric is not None and term.metric.name.endswith("_s") else "",
    )


def _settled(figure: Figure, side: Side) -> Figure:
    """Few lower bounds are taken for the figure itself."""
    return Figure(figure.least, figure.least) if side.is_settled and figure.is_open else figure


def _decided(
    claim: Claim,
    sides: Sequence[Side],
    lows: Sequence[float],
    highs: Sequence[float],
    difference: Interval,
    missing: int,
) -> tuple[str, int | None, str]:
    """The outcome, how many more seeds would decide, and why it is not decided."""
    count, needed = len(lows), least_seeds(claim.confidence)
    if count < needed:
        few = f"{count} {'seeds are' if count > 1 else 'seed is'} too few to tell, whatever they show"
        return UNDECIDED, needed - count, f"{few}: {needed} are the least"
    if missing > MOST_INEXACT * (missing + count):
        return UNDECIDED, None, f"{missing} of {missing + count} seeds have no figure, so the others prove nothing"
    outcome = _outcome(claim.sign, difference)
    if outcome != UNDECIDED:
        return outcome, None, ""
    more = _more_seeds(claim, lows, highs)
    return outcome, more, _why_undecided(sides, more)


def _ratio(claim: Claim, pairs: Sequence[tuple[Figure, Figure]]) -> Interval | None:
    """A side that is not known is 0 or infinite."""
    if claim.left.metric is None or claim.right.metric is None:
        return None
    measured, low, high = (
        intervals.of_ratio(above, below, claim.confidence) if math.isfinite(sum(above) + sum(below)) else None
        for above, below in (
            ([left.least for left, _ in pairs], [right.least for _, right in pairs]),
            ([left.least for left, _ in pairs], [right.most for _, right in pairs]),
            ([left.most for left, _ in pairs], [right.least for _, right in pairs]),
        )
    )
    if measured is None or (low is None and high is None):
        return None
    return replace(measured, low=0.0 if low is None else low.low, high=math.inf if high is None else high.high)


def _mean_of(values: Sequence[float], confidence: float) -> Interval:
    infinite = next((value for value in values if math.isinf(value)), None)
    if infinite is not None:
        return Interval(infinite, infinite, infinite, confidence, len(values))
    return intervals.of_mean(values, confidence)


def _outcome(sign: str, difference: Interval) -> str:
    low, high = (difference.low, difference.high) if sign.startswith(">") else (-difference.high, -difference.low)
    is_strict = "=" not in sign
    if low > 0 or (low == 0 and not is_strict):
        return HOLDS
    if high < 0 or (high == 0 and is_strict):
        return FAILS
    return UNDECIDED


def _keeps(sign: str, difference: float) -> bool:
    """Whether the claim holds in a seed, as far as that is certain."""
    return {"<": difference < 0, "<=": difference <= 0, ">": difference > 0, ">=": difference >= 0}[sign]


def _more_seeds(claim: Claim, lows: Sequence[float], highs: Sequence[float]) -> int | None:
    """From the observed spread, if the observed mean is the true one: so many that the interval excludes 0 with the
    chance :data:`POWER`."""
    z = float(stats.norm.isf((1 - claim.confidence) / 2) + stats.norm.ppf(POWER))
    answers = []
    # Towards a difference above 0 and below it, from the side that is known.
    for values, direction in ((lows, 1), (highs, -1)):
        if any(math.isinf(value) for value in values):
            continue
        mean, spread = float(np.mean(values)) * direction, float(np.std(values, ddof=1))
        if mean > 0:
            answers.append(math.ceil((z * spread / mean) ** 2))
    needed = min(answers, default=MOST_SEEDS + 1)
    return max(needed - len(lows), 1) if needed <= MOST_SEEDS else None


# In words -----------------------------------------------------------------------------------------------------------


def _figures(claim: Claim, sides: Sequence[Side], difference: Interval, ratio: Interval | None) -> str:
    """The claim itself stands before that."""
    if claim.left.metric is None or claim.right.metric is None:
        place = 1 if claim.left.metric is None else 0
        return f"{_mean_in_words(sides[place])} ({_range(_of_metric(claim, difference))})"
    told = " against ".join(_mean_in_words(side) for side in sides)
    if ratio is not None:
        about = "at least " * math.isinf(ratio.high) or "at most " * (ratio.low == 0)
        times = number(ratio.estimate)
        much = f"{times} times as much" if times != "1" else "as much"
        return f"{told}: {about}{much} ({_range(ratio)})"
    if math.isinf(difference.low) and math.isinf(difference.high) and difference.count > 1:
        return told
    scaled = claim.left.factor != 1 or claim.right.factor != 1
    what = "difference, with factors," if scaled else "difference"
    return f"{told}: a {what} of {number(difference.estimate)} ({_range(difference)})"


def _mean_in_words(side: Side) -> str:
    return f"{'at least ' * side.is_lower_bound}{number(side.mean)}{side.unit}"


def _of_metric(claim: Claim, difference: Interval) -> Interval:
    """The interval of the one metric of a claim, from that of its difference to the number."""
    if claim.right.metric is None:
        factor, constant = claim.left.factor, claim.right.factor
        return replace(difference, low=(difference.low + constant) / factor, high=(difference.high + constant) / factor)
    factor, constant = claim.right.factor, claim.left.factor
    return replace(difference, low=(constant - difference.high) / factor, high=(constant - difference.low) / factor)


def _range(interval: Interval) -> str:
    if interval.low == interval.high:
        return f"the same in all {interval.count} seeds"
    if math.isinf(interval.low) and math.isinf(interval.high):
        return "one seed"
    if math.isinf(interval.high):
        ends = f"from {number(interval.low)}"
    elif math.isinf(interval.low):
        ends = f"to {number(interval.high)}"
    else:
        ends = f"{number(interval.low)} to {number(interval.high)}"
    return f"{interval.confidence * 100:g} % interval {ends}"


def _taken(sides: Sequence[Side]) -> Iterator[str]:
    for side in sides:
        if side.lower_bounds and side.is_settled:
            yield f"{side.text} is only a lower bound in {side.lower_bounds} of {side.seeds} seeds, and taken as it is"


def _why_undecided(sides: Sequence[Side], more: int | None) -> str:
    bounded = [f"{side.text} in {side.lower_bounds} of {side.seeds} seeds" for side in sides if side.is_lower_bound]
    if bounded:
        cut = f"pods still waited at the end, so that this is only a lower bound: {', '.join(bounded)}"
        return cut if more else f"{cut}; a longer duration helps, more seeds do not"
    return (
        "the interval allows both answers" if more else "both sides of the claim are the same as far as seeds can tell"
    )


def number(value: float) -> str:
    """Three digits, and all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _side_data(side: Side | None) -> Mapping[str, Any] | None:
    return None if side is None else {"text": side.text, "mean": side.mean, "lower_bounds": side.lower_bounds}
