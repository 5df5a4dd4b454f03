"""Whether the page, the stored results and the experiments belong together, and whether kemu still gives them."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.findings import catalogue, headlines, pages, repeats, runs
from experiments.findings.catalogue import LARGE_NODES, REPEATS, load, stored
from kemu.lab.sweep.experiments.experiments import Experiment
from kemu.lab.sweep.results import files
from kemu.lab.sweep.statistics import judging, samples

CHEAP = ("ping-pong", "cross-node-preemption", "two-pass-filtering")
"""Those whose first seed takes a second or two."""
CELLS = {"schedulers": 6, "starving": 2}
"""By experiment at scale, the variant whose first seed is run again: ten seconds of CPU time in all."""
SLACK = 0.01
"""Where all seeds have one figure, it may differ by this share of it."""


def complaints() -> Iterator[str]:
    if sorted(catalogue.ORDER) != catalogue.quoting():
        differ = set(catalogue.ORDER) ^ set(catalogue.quoting())
        yield f"ORDER in experiments/findings/catalogue.py has other experiments than experiments/: {differ}"
        return
    for name in [*catalogue.ORDER, *catalogue.at_scale()]:
        yield from _complaints_of(name)
    yield from headlines.complaints()
    if not pages.PAGE.exists() or pages.PAGE.read_text() != pages.page():
        yield "docs/findings.md differs from the stored results: scripts/findings writes it"
    wanted = headlines.drawn()
    there = {path: path.read_bytes() for path in headlines.FOLDER.glob("*.svg")}
    for path in sorted({path for path in wanted.keys() | there.keys() if wanted.get(path) != there.get(path)}):
        yield f"docs/pictures/findings/scale/{path.name} differs from the stored results: scripts/findings writes it"


def _complaints_of(name: str) -> Iterator[str]:
    if not catalogue.results(name).exists():
        return
    found, (experiment, _) = stored(name), load(name)
    path = catalogue.shown(catalogue.file(name))
    if found["digest"] != catalogue.digest(experiment):
        yield f"{path} has changed since its results were stored: scripts/findings run {name}"
        return
    if name in catalogue.at_scale():
        if len(experiment.scenario.nodes) < LARGE_NODES:
            yield f"{path} has fewer than {LARGE_NODES} nodes"
        yield from _raw(name, experiment, found)
    elif (wrong := repeats.complaint(name, found)) is not None:
        yield wrong
    if "large" in found:
        large = catalogue.large(name)
        if found["large"]["digest"] != catalogue.digest(large):
            yield f"{name} has changed since it was repeated on {LARGE_NODES} nodes: scripts/findings large {name}"
        elif catalogue.raw(name).exists():
            yield from _raw(name, large, found["large"])


def _raw(name: str, experiment: Experiment, found: Mapping[str, Any]) -> Iterator[str]:
    """Whether the stored judgements follow from the table of all cells."""
    path = catalogue.raw(name)
    if not path.exists():
        yield f"{catalogue.shown(path)} is missing: scripts/findings run {name}"
        return
    judged = judging.judge(experiment.claims, files.read(path).records)
    if runs.rounded([dict(each.data()) for each in judged]) != found["claims"]:
        yield f"{catalogue.shown(path)} gives other judgements than are stored: scripts/findings run {name}"


def drift(jobs: int) -> Iterator[str]:
    """Where the first seed of a cheap experiment has other figures than are stored, or one cell at scale has figures
    that stray from them."""
    with tempfile.TemporaryDirectory() as folder:
        for name, variant in {**dict.fromkeys(CHEAP), **CELLS}.items():
            if not catalogue.results(name).exists():
                continue
            experiment, _ = load(name)
            one = dataclasses.replace(experiment, seeds=experiment.seeds[:1], claims=())
            before = stored(name)["first seed"]
            if variant is not None:
                one = dataclasses.replace(one, variants=(one.variants[variant],), overrides=(one.overrides[variant],))
            now = runs.results_of(one, Path(folder) / name, jobs)["first seed"]
            if variant is None and now != before:
                yield f"{name}: seed {now['seed']} gives other figures than are stored: scripts/findings run {name}"
            elif variant is not None:
                yield from _strays(name, experiment, variant, now["figures"][0])


def _strays(name: str, experiment: Experiment, variant: int, now: Mapping[str, float | None]) -> Iterator[str]:
    """Figures of a cell at scale that lie further from those of all stored seeds than these lie from one another.

    With a thousand nodes any change of a message at the beginning gives other draws; that is no other finding.
    """
    records = [each for each in files.read(catalogue.raw(name)).records if each.cell.index == variant]
    for metric in experiment.metrics:
        known = [figure.least for each in records if (figure := samples.figure(each, metric)) is not None]
        value = now[metric.text]
        if not known or value is None:
            continue
        low, high = min(known), max(known)
        room = max(high - low, SLACK * abs(high))
        if not low - room <= value <= high + room:
            told = f"{metric.text} is {value:g}, with the stored seeds {low:g} to {high:g}"
            yield f"{name}, variant {variant}: {told}: scripts/findings run {name}"


def other_outcomes(jobs: int, wanted: Sequence[str]) -> Iterator[str]:
    """Where a whole experiment, run anew, is judged otherwise than stored. Those at scale only if they are named."""
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted or catalogue.ORDER:
            experiment, _ = load(name)
            now = runs.results_of(experiment, Path(folder) / name, jobs)
            before = {key: value for key, value in stored(name).items() if key not in (*REPEATS, "nodes")}
            if now != before:
                outcomes = [(claim["id"], claim["outcome"]) for claim in now["claims"]]
                yield f"{name}: other results than are stored; the claims now: {outcomes}"
