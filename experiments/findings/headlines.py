"""The strongest results at scale, each with its numbers, its picture and its command, from stored results alone.

:data:`HEADLINES` names those that have a sentence of their own. Every other experiment at scale gives the claim that
:func:`strongest` finds, in the words of its id. No number is typed here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt

from experiments.findings import catalogue, runs
from experiments.findings.catalogue import LARGE_NODES, load, stored
from experiments.findings.words import MARKS, count, number
from kemu.lab.scenario.playing.runner import plain
from kemu.lab.sweep.plots import pictures, styles
from kemu.lab.sweep.statistics.claims import Claim, Term

CONFIDENCE = 0.99
MOST = 10
FOLDER = runs.PICTURES / "scale"
THEME = "light"


@dataclass(frozen=True)
class Headline:
    experiment: str
    claims: Mapping[str, str]
    """By id, the outcome that ``says`` speaks of; the first one is drawn."""
    says: str
    """One sentence, without figures of the results."""


HEADLINES: Sequence[Headline] = (
    Headline(
        "starving",
        {"spread-pods-leave-no-whole-node": "holds", "packing-serves-groups-up-to-0.9": "holds"},
        "Small pods that are spread leave no node for a pod that needs a whole one, with a fifth of the cluster free;"
        " packed, they do",
    ),
    Headline(
        "starving",
        {"patience-saves-attempts": "holds", "patience-halves-the-wait-of-small-pods": "fails"},
        "An idle scheduler tries pods that fit nowhere again and again, and the others do not wait longer for it",
    ),
    Headline(
        "schedulers",
        {"eight-racing-schedulers-are-no-faster-than-one": "holds"},
        "Schedulers that race for the same pods are hardly faster than one alone",
    ),
    Headline(
        "schedulers",
        {"split-by-name-eight-are-five-times-as-fast": "holds", "a-hash-splits-as-well-as-names": "holds"},
        "Schedulers with pods of their own bind a burst several times as fast, whether names or a hash split it",
    ),
    Headline(
        "schedulers",
        {"looking-at-fewer-nodes-makes-it-worse": "holds", "split-by-zone-they-never-do": "holds"},
        "Schedulers that look at fewer nodes take the same room more often; those with zones of their own never do",
    ),
    Headline(
        "cascades",
        {"but-no-deeper-than-three": "holds", "more-classes-make-deeper-cascades": "holds"},
        "Cascades of preemptions stay shallow on a thousand nodes, even with eight priority classes",
    ),
    Headline(
        "slow-server",
        {
            "at-nine-tenths-it-lasts-several-times-as-long": "holds",
            "at-half-load-a-slowdown-is-over-when-its-cause-is": "holds",
            "even-at-97-percent-it-ends": "holds",
        },
        "Where heartbeats leave an API server little to spare, an overload outlives its cause by minutes, and ends by"
        " itself all the same",
    ),
    Headline(
        "lost-zone",
        {
            "who-loses-more-of-a-zone-gets-less-replaced": "holds",
            "a-zone-that-is-lost-as-a-whole-is-evacuated-at-the-full-rate-again": "holds",
        },
        "At the default eviction rates, who loses more of a zone gets less replaced, until all of it is lost",
    ),
    Headline(
        "drained-zone",
        {"a-strict-spread-and-a-budget-block-the-drain-for-ever": "holds"},
        "A disruption budget and a strict spread over zones block each other for ever when a zone is drained",
    ),
    Headline(
        "drained-zone",
        {"a-sixth-of-the-budget-takes-more-than-four-times-as-long": "holds", "but-costs-as-many-pod-seconds": "holds"},
        "A smaller disruption budget makes a drain slower and costs as much",
    ),
)


def all_of_them() -> list[Headline]:
    """At most ``MOST``, of the experiments that have results; every one of these is among them."""
    done = catalogue.done_at_scale()
    found = [each for each in HEADLINES if each.experiment in done]
    named = {each.experiment for each in found}
    others = [each for name in done if name not in named and (each := strongest(name)) is not None][:MOST]
    return [*found[: MOST - len(others)], *others]


def strongest(name: str) -> Headline | None:
    """The decided claim whose sides differ by the largest factor, at the end of its interval that is nearer to 1."""
    decided = [(factor(claim), claim) for claim in stored(name)["claims"] if is_decided(claim)]
    if not decided:
        return None
    _, claim = max(decided, key=lambda each: each[0])
    words = claim["id"].replace("-", " ")
    says = f"{words[0].upper()}{words[1:]}" + ("" if claim["outcome"] == "holds" else ": it is not so")
    return Headline(name, {claim["id"]: claim["outcome"]}, says)


def is_decided(claim: Mapping[str, Any]) -> bool:
    return bool(claim["outcome"] != "undecided" and claim["confidence"] >= CONFIDENCE)


def factor(claim: Mapping[str, Any]) -> float:
    """From 1 on; 1 where no ratio is told."""
    ratio = claim["ratio"]
    if ratio is None:
        return 1.0
    ends = [end for end in (ratio["low"], ratio["high"]) if end]
    if not ends or min(ends) <= 1 <= (ratio["high"] or math.inf):
        return 1.0
    return float(max(min(ends), 1 / max(ends)))


def counted() -> dict[str, int]:
    """Claims about ``LARGE_NODES`` nodes and more, by outcome, at ``CONFIDENCE``; those at less are not counted."""
    claims = [claim for name in catalogue.done_at_scale() for claim in stored(name)["claims"]]
    for name in catalogue.ORDER:
        if catalogue.results(name).exists():
            claims += stored(name).get("large", {}).get("claims", ())
    sure = [claim["outcome"] for claim in claims if claim["confidence"] >= CONFIDENCE]
    return {outcome: sure.count(outcome) for outcome in MARKS}


def section() -> Iterator[str]:
    counts = counted()
    decided = counts["holds"] + counts["fails"]
    yield "## The strongest results at scale\n\n"
    yield f"**{count(decided, 'claim')}** about {LARGE_NODES:,} nodes or more "
    yield f"{'is' if decided == 1 else 'are'} decided at a confidence of {100 * CONFIDENCE:g} %: "
    yield f"{counts['holds']} hold and {counts['fails']} do not. Undecided: {counts['undecided']}.\n\n"
    for place, headline in enumerate(all_of_them(), 1):
        yield from told(place, headline)


def told(place: int, headline: Headline) -> Iterator[str]:
    name = headline.experiment
    found = stored(name)
    yield f"### {place}. {headline.says}\n\n"
    for one in headline.claims:
        claim = claim_of(found, one)
        meaning = one.replace("-", " ")
        yield f"* {meaning[0].upper()}{meaning[1:]}: {MARKS[claim['outcome']]} {claim['outcome']} at "
        yield f"{100 * claim['confidence']:g} %. {claim['detail'][0].upper()}{claim['detail'][1:]}. `{claim['says']}`\n"
    picture = f"pictures/findings/{FOLDER.name}/{picture_of(headline).name}"
    yield f"\n![{headline.says}]({picture})\n\n"
    path = catalogue.shown(catalogue.file(name))
    yield f"{found['nodes']:,} nodes, {found['seeds']} seeds for each variant, {found['cells']['total']} runs: "
    yield f"`kemu sweep {path}`. More: [{name}](#{name}).\n\n"


def claim_of(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    claim: Mapping[str, Any] = next(each for each in found["claims"] if each["id"] == name)
    return claim


def complaints() -> Iterator[str]:
    """Where a sentence speaks of an outcome that the results do not have."""
    for headline in all_of_them():
        outcomes = {claim["id"]: claim["outcome"] for claim in stored(headline.experiment)["claims"]}
        for claim, outcome in headline.claims.items():
            if outcomes.get(claim) != outcome:
                yield f"the headline of {headline.experiment} says that {claim} {outcome}; it is {outcomes.get(claim)}"


# Pictures -------------------------------------------------------------------------------------------------------------


def picture_of(headline: Headline) -> Path:
    return FOLDER / f"{headline.experiment}.{next(iter(headline.claims))}.svg"


def drawn() -> dict[Path, bytes]:
    """What the pictures of all headlines should be."""
    return {picture_of(headline): draw(headline) for headline in all_of_them()}


def draw(headline: Headline) -> bytes:
    """The metric that the first claim is about: means of all variants with their intervals; both sides in colour."""
    experiment, _ = load(headline.experiment)
    claim = next(each for each in experiment.claims if each.id == next(iter(headline.claims)))
    theme = styles.THEMES[THEME]
    sides = [side for side in (claim.left, claim.right) if side.metric is not None]
    metric = sides[0].metric
    assert metric is not None
    points = list(_points(stored(headline.experiment), claim, metric.text))
    names = [point["name"] for point in points]
    positive = [point["mean"] for point in points if point["mean"] > 0]
    logarithmic = len(positive) == len(points) and max(positive) > 30 * min(positive)
    scale = alt.Scale(type="log") if logarithmic else alt.Scale(domainMin=0)
    words = styles.title(metric.name) + (f", pods of priority {metric.priority}" if metric.priority is not None else "")
    colour = alt.Color(
        "side:N", legend=None, scale=alt.Scale(domain=["left", "right", ""], range=[*theme.colours[:2], theme.dim])
    )  # fmt: skip
    y = alt.Y("name:N", sort=names, title=None, axis=alt.Axis(labelLimit=360, grid=True))
    base = alt.Chart(alt.Data(values=points))
    made = alt.layer(
        base.mark_rule(strokeWidth=2.4).encode(
            x=alt.X("low:Q", title=words, scale=scale), x2="high:Q", y=y, color=colour
        ),
        base.mark_point(size=90, filled=True, opacity=1).encode(
            x=alt.X("mean:Q", title=words, scale=scale), y=y, color=colour,
            shape=alt.Shape(
                "kind:N", legend=None, scale=alt.Scale(domain=["mean", "at least"], range=["circle", "triangle-right"])
            ),
        ),
        base.mark_text(align="left", dx=10, dy=-8).encode(x="mean:Q", y=y, text="label:N", color=colour),
    ).properties(width=560, height=26 * len(points))  # fmt: skip
    manner = pictures.Manner(theme=THEME)
    return pictures.rendered(pictures.specified(made, manner), manner)


def _points(found: Mapping[str, Any], claim: Claim, metric: str) -> Iterator[dict[str, Any]]:
    for variant in found["variants"]:
        figure = variant["metrics"].get(metric)
        if figure is None:
            continue
        mean, at_least = figure["mean"], figure["high"] is None
        values = variant["variant"]
        side = "left" if _speaks_of(claim.left, values) else "right" if _speaks_of(claim.right, values) else ""
        name = plain(next(iter(values.values()))) if len(values) == 1 else variant["name"]
        yield {
            "name": name, "mean": mean, "side": side,
            "low": mean if at_least else figure["low"], "high": mean if at_least else figure["high"],
            "kind": "at least" if at_least else "mean",
            "label": ("≥ " if at_least else "") + number(mean),
        }  # fmt: skip


def _speaks_of(term: Term, variant: Mapping[str, Any]) -> bool:
    return term.metric is not None and all(str(variant.get(path)) == str(value) for path, value in term.variant.items())
