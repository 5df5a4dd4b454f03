"""The page docs/findings.md, from stored results alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.findings import catalogue, headlines, repeats, runs
from experiments.findings.catalogue import LARGE_NODES, REPEATS, load, stored
from experiments.findings.words import MARKS, figure, row, words
from kemu.lab.scenario.playing.runner import plain
from kemu.lab.sweep.results import tables

PAGE = catalogue.ROOT / "docs" / "findings.md"
DOCUMENTS = {
    "KEP-4671: Gang Scheduling using Workload Object": (
        "https://github.com/kubernetes/enhancements/tree/master/keps/sig-scheduling/4671-gang-scheduling"
    ),
    "Pod Preemption in Kubernetes": (
        "https://github.com/kubernetes/design-proposals-archive/blob/main/scheduling/pod-preemption.md"
    ),
    "Pod Priority and Preemption": "https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/",
    "Scheduling, Preemption and Eviction": "https://kubernetes.io/docs/concepts/scheduling-eviction/",
}
"""That are quoted; the experiments name them with a number behind."""
SMALL_HEAD = f"""\
## What the documents say

What Kubernetes' design documents and its documentation claim or leave open about priority, preemption and eviction.
Three documents are quoted: the design proposal
[Pod Preemption in Kubernetes]({DOCUMENTS["Pod Preemption in Kubernetes"]}),
and the chapters [Pod Priority and Preemption]({DOCUMENTS["Pod Priority and Preemption"]})
and [Scheduling, Preemption and Eviction]({DOCUMENTS["Scheduling, Preemption and Eviction"]})
of the documentation. These clusters are small. Take a file, change it, and run it again.

Where nothing in an experiment is a switch of kemu's own, it is repeated on real control planes
([how](live.md#a-scenario-on-a-real-control-plane)), with fewer seeds: those figures stand beside the others. Three
seeds decide no claim; they show whether the effect is of the same kind and size.

Most effects should not depend on the number of nodes. So the same experiments are repeated on {LARGE_NODES:,} nodes
(`scripts/findings large`): with as many more pods ([scale](scenarios.md#the-run)), larger gangs, quotas and node groups
in proportion, the times of a [real control plane](scenarios.md#timing) instead of those that the small one states, and
the variants that the claims speak of. Many nodes have as many pods in a shorter time: some of these runs are shorter,
and the section says how. With a real control plane's times one scheduler takes 2.6 ms for a pod on a thousand nodes.
Where more than 380 pods come in a second, pods wait for the scheduler and room stays free meanwhile, as never on a
small cluster. On the large cluster a claim

* **stands** if it is judged as on the small cluster;
* **weakens** if it is so, but by less: its effect, as a logarithm, is not half as far from the limit that the claim
  states;
* **turns** if it held and fails, or failed and holds;
* is **decided** if it was undecided.

"""
HEAD = """\
# Findings

What [experiments](../experiments) with kemu say about scheduling, preemption and eviction in Kubernetes: on
[a thousand nodes and more](#at-scale), and about [what the documents say](#what-the-documents-say). Each varies a
cluster, and runs every variant with the same seeds: the same pods arrive at the same times.

"""
READING = """\
## How to read the sections

Every section has two tables:

* **Variants**: one row each. The columns on the right are [metrics](results.md#runs-one-row-for-each-run);
  `(priority=1000)` means only the pods of that priority. Figures are means over the seeds, with 95 % intervals in
  brackets where seeds differ. *≥* marks a mean over runs in which pods still waited at the end, so that the true one is
  higher.
* **Claims**: each compares two sides, seed by seed ([statistics](statistics.md#claims)): ✓ holds, ✗ fails, ? is
  undecided. The last column has the mean of both sides, and how many times as much the left one is; a factor that the
  claim names is not part of these figures.

**A claim that fails is a result**: claims are stated before the experiment runs, and many state what a document says.
`scripts/findings` makes this page from [stored results](../experiments/results).

"""
SCALE_HEAD = f"""\
## At scale

Questions that small clusters cannot answer: {LARGE_NODES:,} nodes or more, the times of a
[real control plane](scenarios.md#timing), and claims at a confidence of 99 %, written down before the first run. The
table of all cells is beside the [results](../experiments/results/scale), for
[`kemu results`](results.md) and any program that reads Parquet.

"""


def page() -> str:
    done = [name for name in catalogue.ORDER if catalogue.results(name).exists()]
    scale = catalogue.done_at_scale()
    parts = [HEAD]
    if scale:
        parts += [*headlines.section(), READING, SCALE_HEAD, *overview(scale)]
        parts += [part for name in scale for part in section(name)]
    else:
        parts.append(READING)
    parts += [SMALL_HEAD, *overview(done, are_small=True)]
    waiting = [f"[{name}](../experiments/{name}.yaml)" for name in catalogue.ORDER if name not in done]
    if waiting:
        parts.append(f"Not run yet: {', '.join(waiting)}.\n\n")
    parts += [part for name in done for part in section(name)]
    return "".join(parts)


def write() -> None:
    """The page and the pictures of its head."""
    PAGE.write_text(page())
    wanted = headlines.drawn()
    headlines.FOLDER.mkdir(parents=True, exist_ok=True)
    for path in headlines.FOLDER.glob("*.svg"):
        if path not in wanted:
            path.unlink()
    for path, picture in wanted.items():
        path.write_bytes(picture)


def overview(done: Sequence[str], *, are_small: bool = False) -> Iterator[str]:
    heads = ["experiment", "claims", *([f"on {LARGE_NODES:,} nodes"] if are_small else []), "what it found"]
    yield row(heads) + row(["---"] * len(heads))
    for name in done:
        _, spec = load(name)
        outcomes = [claim["outcome"] for claim in stored(name)["claims"]]
        counts = [f"{outcomes.count(outcome)} {mark}" for outcome, mark in MARKS.items() if outcome in outcomes]
        first = words(spec.get("finding", "")).partition(". ")[0].rstrip(".")
        large = [repeats.shortly(name, stored(name))] if are_small else []
        yield row([f"[{name}](#{name})", ", ".join(counts), *large, first])
    yield "\n"


def section(name: str) -> Iterator[str]:
    experiment, spec = load(name)
    found = stored(name)
    yield f"### {name}\n\n{words(spec['question'])}\n\n"
    for quote in spec.get("quotes", ()):
        document = quote["document"].partition(" (document")[0]
        yield f"> {words(quote['text'])}\n>\n> — [{document}]({DOCUMENTS[document]}), *{quote['section']}*\n\n"
    if "finding" in spec:
        yield f"{words(spec['finding'])}\n\n"
    if (runs.PICTURES / f"{name}.svg").exists():
        yield f"![{experiment.description}](pictures/findings/{name}.svg)\n\n"
    yield from variants_of(found)
    yield f"\n{found['seeds']} seeds: `kemu sweep {catalogue.shown(catalogue.file(name))}`"
    if name in catalogue.at_scale():
        yield f"; all cells: [{name}.parquet](../{catalogue.shown(catalogue.raw(name))})"
    yield "\n\n"
    there = [(key, found[key]) for key in REPEATS if key in found]
    titles = {"real": "for real", "large": f"{LARGE_NODES:,} nodes"}
    heads = "".join(f" | both sides, {titles[key]} |" for key, _ in there)
    yield f"| claim | | both sides |{heads}\n{'| --- ' * (3 + 2 * len(there))}|\n"
    for claim in found["claims"]:
        more = f"; about {claim['more_seeds']:,} more seeds would decide" if claim["more_seeds"] else ""
        again = [next(other for other in each["claims"] if other["id"] == claim["id"]) for _, each in there]
        yield row(
            [
                f"{claim['id'].replace('-', ' ')}<br>`{claim['says']}`",
                f"{MARKS[claim['outcome']]} {claim['outcome']}{more}",
                claim["detail"],
                *(cell for other in again for cell in (judged(other, claim), other["detail"])),
            ]
        )
    yield "\n"
    for key, each in there:
        if key == "real":
            yield f"**Repeated for real**, with Kubernetes {each['kubernetes']} and {each['seeds']} seeds:\n\n"
        else:
            yield f"**On {each['nodes']:,} nodes**, with as many more pods and {each['seeds']} seeds, "
            yield f"{repeats.sentence(repeats.by_fate(found['claims'], each['claims']))}."
            yield repeats.times(name)
            yield "".join(f" {said}" for said in (repeats.WHY.get(name), all_cells(name)) if said) + "\n\n"
        yield from variants_of(each)
        yield "\n"
    if "real" not in found and name in catalogue.ORDER:
        yield f"Simulated only: {runs.why_not_real(name) or 'not repeated yet'}.\n\n"


def judged(again: Mapping[str, Any], claim: Mapping[str, Any]) -> str:
    """The outcome of a repeat, and its claim where a count is in proportion."""
    other = "" if again["says"] == claim["says"] else f"<br>`{again['says']}`"
    return f"{MARKS[again['outcome']]} {again['outcome']}{other}"


def all_cells(name: str) -> str:
    path = catalogue.raw(name)
    return f"All cells: [{name}.parquet](../{catalogue.shown(path)})." if path.exists() else ""


def variants_of(found: Mapping[str, Any]) -> Iterator[str]:
    paths = list(found["variants"][0]["variant"])
    metrics = list(found["variants"][0]["metrics"])
    yield row([*(tables.last_part(path) for path in paths), *(f"`{metric}`" for metric in metrics)])
    yield row(["---"] * len(paths) + ["---:"] * len(metrics))
    for variant in found["variants"]:
        cells = [plain(variant["variant"][path]) for path in paths]
        yield row([*cells, *(figure(variant["metrics"][metric]) for metric in metrics)])
