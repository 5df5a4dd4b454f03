"""What became of the claims of small experiments on a thousand nodes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.findings.catalogue import LARGE_NODES, LARGE_TIMES

FATES = {
    "stands": "stand",
    "weakens": "weaken",
    "turns": "turn",
    "is undecided": "are undecided",
    "is decided": "are decided",
    "stays undecided": "stay undecided",
}
"""What becomes of a claim: of one, and of several."""
WEAKER = 0.5
"""A claim of the same outcome weakens if its effect, as a logarithm, lies less than this share as far from the limit
that the claim states."""
WHY: Mapping[str, str] = {
    "who-preempts": (
        "The pods for which the kubelet preempts run as late as on the small cluster, after 19 s. Those for which the"
        " scheduler does take 10.4 s, not 6.7 s, so that it is less far ahead. An idle scheduler tries pods before"
        " their back-off is over; this one is busy for four fifths of the time. So in the run with seed 1 its"
        " preemptors spend 6.4 s in back-off, not 0.4 s, and are bound 1.6 s after their last victim has gone, not"
        " 0.1 s."
    ),
    "second-filtering-pass": (
        "In proportion each label has 166 servers, and its clients may run beside any of them. A third of the"
        " servers need no victim and run at once. On the small cluster that was no help to the clients of the"
        " others; here it mostly is, so that clients no longer wait for most servers. Without the second pass they"
        " wait for none, as before. Pods without affinity now notice the second pass: while hundreds of clients"
        " wait, the scheduler tries these again and again, and the others wait up to 1.4 s, not 1.2 s, most of it"
        " when 166 servers come at once."
    ),
    "cross-node-preemption": (
        "In proportion each of the three zones has more than a hundred pods in the way, also where the small cluster"
        " has four in all. A set that helps has as many victims, and no search over sets comes to that: each spends its"
        " whole budget in vain. That takes the scheduler a fifth of a second, so that it tries only 218 of the 333"
        " important pods until the end."
    ),
    "victim-search": (
        "In proportion each zone has hundreds of the pods in the way. The search over sets comes to none that helps,"
        " and preempts nobody. One by one, the first important pod gets its place for all those of a zone: 444 or 888"
        " on average. While these end, the next ones empty another zone, or both others. An attempt takes some 7,000"
        " evaluations then, nearly as many as one over sets; it costs less in all only because some 40 attempts are"
        " enough."
    ),
    "lower-priority-affinity": (
        "An attempt asks every node, so that evaluations grow with pods times nodes: with 12 caches in proportion there"
        " are 960 for each important pod, not 10. Where the search is in vain, 7,968 caches stand around, and from the"
        " first important pod on, both searches keep the scheduler busy to the end: it makes 144 attempts at such pods"
        " over sets, 849 one by one, and 3,000 caches are never bound. An attempt costs 31,000"
        " evaluations over sets, and 5,000 one by one, a sixth; but there is time for some four million either way."
    ),
    "sampling": (
        "One percent of a hundred nodes is one node, which leaves nothing to choose; of a thousand it is ten, and with"
        " ten the cluster takes as much as if all were scored. Scoring all takes 2.3 ms longer than scoring a tenth,"
        " but the rest of a pod's wait, 4 ms of requests, is the same, so that the wait is not halved."
    ),
    "transition-period": (
        "On a few of the thousand nodes a minute is too short: they lose the taint once. While all other nodes keep it,"
        " these few get the best-effort pods that wait for any node, 800 to 1,900 in a run, and hundreds of them are"
        " killed because memory runs out."
    ),
    "nominated-node-first": (
        "Among a thousand nodes another one sometimes has room as well when the victims are gone. Who looks at all"
        " nodes alike may take that one, and the victims went in vain: one in five, and with the nominated node first"
        " one in fourteen."
    ),
    "backfilling": (
        "An idle scheduler tries gangs as often as it can, on any cluster: 41,476 attempts, not 27,590, as one takes"
        " less time there. With back-off the attempts are in proportion to the pods, 4,929 for ten times as many."
    ),
    "gangs-of-schedulers": (
        "Gangs have a thousand members there. Four schedulers have 4,638 bindings in vain, a quarter, and two 1,199,"
        " one in fourteen: smaller shares than among gangs of eight. But with four schedulers 927 of 16,000 members"
        " never run, in six of the eight seeds; with one scheduler all do. What replaces rejected members is decided"
        " about together with the rest of its gang. If one of these ends before all are bound, too few of the gang are"
        " left, and the scheduler lets the others wait in Permit, for five minutes: in one run 792 pods, whose room"
        " nobody else gets."
    ),
    "budget-density": (
        "In proportion 40 important pods come in a second, and as many end, so that pods more often find free CPUs than"
        " victims: where the others are more important and three quarters guarded, there are 6,240 preemptions, not"
        " 13,150. So respect for budgets costs a quarter more preemptions there, not twice as many, and it violates no"
        " more budgets, but a tenth fewer at most, which leaves one claim undecided. The important pods do not wait"
        " longer for it on average (3.3 s against 3.5 s, in one run), but back-off makes them wait in steps: the second"
        " attempt comes after 1.6 s on average, the third after 4.5 s. With respect 49.6 % have a node by the second,"
        " without it 53.5 %, so that the medians, 4.1 s and 2.0 s, lie on two sides of a step."
    ),
    "two-pass-filtering": (
        "One scheduler is at its limit there: 500 pods come in a second, and it tries some 370. So there are nearly"
        " always free CPUs, and a preemptor has 2.5 victims in all, not 16; with one pass they go in vain all the more."
        " Without nomination a sixth more pods are preempted, because preemptors then preempt again while their victims"
        " still end: in a run on a hundred nodes 627 times, and 428 times with one pass."
    ),
    "requeue-all": (
        "One scheduler is at its limit there: 500 pods come in a second, and it tries some 380. So the cluster never"
        " fills up (64 %), a pod is tried 1.1 times on average, and there is hardly anything to requeue, for hints or"
        " for every event. The pods that fit nowhere have the lowest priority: as others are always waiting, fewer than"
        " a thousand of 12,000 are tried at all, with either."
    ),
    "victim-order": (
        "Among a thousand nodes there is one whose burstable batch pods are enough for a job, as long as there are any."
        " So web servers are thrown out late, in one run nine of them within the first 50 s, and about 2,700 in all:"
        " no loop fills the run. But with QoS first seven in ten preemptions are in vain, by priority one in ten, and"
        " a fifth fewer pods are bound. QoS alone preempts no more pods than that, but binds the fewest."
    ),
}
"""Why claims are judged otherwise on so many nodes: a sentence or two for each experiment of which any is."""
NOT_YET: Mapping[str, float] = {
    "queue-and-nomination": 2.2,
    "creation-rate": 2.5,
    "grace-periods": 1.9,
    "backoff-inversion": 5,
    "autoscaler-cut-off": 3,
    "greedy-tenant": 3,
}
"""By experiment that is not repeated yet, about how many hours of a core it takes."""


def fate(small: Mapping[str, Any], large: Mapping[str, Any]) -> str:
    """Of one claim, from its two stored judgements."""
    before, after = small["outcome"], large["outcome"]
    if after == "undecided":
        return "stays undecided" if before == after else "is undecided"
    if before != after:
        return "is decided" if before == "undecided" else "turns"
    was, now = _distance(small), _distance(large)
    open_sides = any(large[side] and large[side]["lower_bounds"] for side in ("left", "right"))
    weaker = was is not None and now is not None and not open_sides and now < WEAKER * was
    return "weakens" if weaker else "stands"


def by_fate(small: Sequence[Mapping[str, Any]], large: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The ids of claims, fates in the order of :data:`FATES`."""
    again = {claim["id"]: claim for claim in large}
    found: dict[str, list[str]] = {key: [] for key in FATES}
    for claim in small:
        found[fate(claim, again[claim["id"]])].append(claim["id"])
    return {key: ids for key, ids in found.items() if ids}


def counted(found: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{len(ids)} {key if len(ids) == 1 else FATES[key]}" for key, ids in found.items())


def sentence(found: Mapping[str, Sequence[str]]) -> str:
    total, standing = sum(map(len, found.values())), len(found.get("stands", ()))
    if standing == total:
        claims = f"all {total} claims stand" if total > 1 else "the claim stands"
    else:
        claims = f"{standing} of {total} claims stand{'s' if standing == 1 else ''}" if standing else "no claim stands"
    parts = [claims]
    for key, ids in found.items():
        if key != "stands":
            names = [f"“{each.replace('-', ' ')}”" for each in ids]
            listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
            parts.append(f"{listed} {key if len(ids) == 1 else FATES[key]}")
    return "; ".join(parts)


def times(name: str) -> str:
    """The sentence about runs that are shorter than those on few nodes; empty for others."""
    if name not in LARGE_TIMES:
        return ""
    values, why = LARGE_TIMES[name]
    told = ", ".join(f"`{path}: {value}`" for path, value in values.items())
    return f" Its runs are shorter there ({told}): {why}."


def shortly(name: str, found: Mapping[str, Any]) -> str:
    """``found``: what is stored of the experiment."""
    if "large" in found:
        return counted(by_fate(found["claims"], found["large"]["claims"]))
    if name not in NOT_YET:
        return ""
    hours = NOT_YET[name]
    return f"not yet: about {hours:g} core hour{'' if hours == 1 else 's'}"


def complaint(name: str, found: Mapping[str, Any]) -> str | None:
    """What is wrong with what this module says of the experiment."""
    is_repeated = "large" in found
    if is_repeated == (name in NOT_YET):
        told = "is repeated, and NOT_YET says it is not" if is_repeated else "is not repeated, and NOT_YET lacks it"
        return f"{name} {told}: on {LARGE_NODES} nodes, experiments/findings/repeats.py"
    changed = is_repeated and {"turns", "weakens"} & by_fate(found["claims"], found["large"]["claims"]).keys()
    if bool(changed) != (name in WHY):
        told = "is judged otherwise, and WHY lacks it" if changed else "is judged as before, and WHY has it"
        return f"{name} {told}: on {LARGE_NODES} nodes, experiments/findings/repeats.py"
    return None


def _distance(claim: Mapping[str, Any]) -> float | None:
    """Of the effect from the limit, as a logarithm; None where there is none."""
    left, right = (_factor(side) for side in re.split(" (?:[<>]=?) ", claim["says"]))
    value = claim["ratio"]["estimate"] if claim["ratio"] else None
    if value is None and claim["left"] and _NUMBER.fullmatch(claim["says"].rpartition(" ")[2]):
        value = claim["left"]["mean"]
    return abs(math.log(value * left / right)) if value and value > 0 and right > 0 else None


_NUMBER = re.compile(r"[0-9.]+")


def _factor(side: str) -> float:
    """Of a side of a claim; a number alone is its own."""
    first = side.partition(" * ")[0]
    return float(first) if _NUMBER.fullmatch(first) else 1.0
