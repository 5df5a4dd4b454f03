"""The same run without a root: what disappears with it.

    checked = check(scenario, causes, limit_s=60)

Role: makes runs, in memory, so it takes as long as they do; :mod:`finding` makes none.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping
from typing import Any

from kemu.errors import KemuError
from kemu.lab.exploration import executions
from kemu.lab.exploration.executions import Stop
from kemu.lab.scenario.playing import judging
from kemu.lab.scenario.scenarios import Scenario
from kemu.lab.tell import people
from kemu.lab.tell.causes import finding, gentler
from kemu.lab.tell.causes.evidence import Evidence
from kemu.lab.tell.causes.roots import CONFIGURATION, LOAD, Causes, Check, Effect, Link, Root
from kemu.lab.tell.explaining import siblings

CHECKED = 2
"""So many roots are checked unless more are asked for."""
MOST_EFFECTS = 5


def check(scenario: Scenario, causes: Causes, limit_s: float, most: int = CHECKED) -> Causes:
    """The same with the checks of its first roots. ``limit_s``: of all siblings together; one that takes longer is not
    known."""
    deadline_s = time.monotonic() + limit_s
    roots = [
        dataclasses.replace(root, check=_checked(scenario, causes, root, deadline_s, limit_s))
        if number < most
        else root
        for number, root in enumerate(causes.roots)
    ]
    # What is refuted comes after what is not.
    roots.sort(key=lambda root: root.check is not None and root.check.holds is False)
    return dataclasses.replace(causes, roots=tuple(roots))


def without(scenario: Scenario, root: Root) -> tuple[Scenario, str, str] | None:
    """The scenario without a root, what it lacks in words, and what it has in its place, if anything; None: the root
    cannot be taken away."""
    milder = ""
    if root.fault:
        rest = tuple(one for one in scenario.chaos if one.id not in (root.fault, *root.also))
        differs, what = len(rest) < len(scenario.chaos), f"the {root.what}"
        other = dataclasses.replace(scenario, chaos=rest)
    elif root.events:
        events = tuple(one for one in scenario.events if one.index not in root.events)
        count = len(scenario.events) - len(events)
        what = f"the {root.what}" if count == 1 else f"the {root.what} ({count} events)"
        differs, other = count > 0, dataclasses.replace(scenario, events=events)
    elif root.kind == LOAD:
        name = root.name.removeprefix("workload ")
        streams = tuple(one for one in scenario.workloads if one.name != name)
        differs, what = len(streams) < len(scenario.workloads), root.name
        other = dataclasses.replace(scenario, workloads=streams)
    elif root.name.startswith(("bug ", "ablation ")):
        name = root.name.partition(" ")[2]
        bugs, ablate = (tuple(one for one in listed if one != name) for listed in (scenario.bugs, scenario.ablate))
        differs, what = (bugs, ablate) != (scenario.bugs, scenario.ablate), root.name
        other = dataclasses.replace(scenario, bugs=bugs, ablate=ablate)
    elif root.name.startswith("admission hook "):
        name, servers = root.name.removeprefix("admission hook "), scenario.api_servers
        hooks = [one for one in servers.admission_hooks if one["name"] != name]
        differs, what = len(hooks) < len(servers.admission_hooks), root.name
        other = dataclasses.replace(scenario, api_servers=dataclasses.replace(servers, admission_hooks=hooks))
    elif root.kind == CONFIGURATION or root.name.startswith("registry "):
        what = root.name
        milder_one = gentler.gentler(scenario, root)
        if milder_one is not None:
            other, milder = milder_one
            differs = True
        else:
            setup = tuple(one for one in scenario.setup if gentler.full_name(one.message) != root.name)
            differs = len(setup) < len(scenario.setup)
            other = dataclasses.replace(scenario, setup=setup)
    else:
        return None
    return (other, what, milder) if differs else None


def _checked(scenario: Scenario, causes: Causes, root: Root, deadline_s: float, limit_s: float) -> Check:
    sibling = without(scenario, root)
    if sibling is None:
        return Check(root.what, None, why="a scenario cannot be run without it")
    other, what, milder = sibling
    try:
        found = _run(other, deadline_s)
    except KemuError as error:
        return Check(what, None, why=f"the run without it is not possible: {error}", instead=milder)
    if found is None:
        return Check(what, None, why=f"the run without it takes longer than {people.duration(limit_s)}", instead=milder)
    after, _ = found
    gone = causes.total - after.total
    holds = gone >= causes.total * root.share / 2
    return Check(what, holds, _effects(causes.symptoms, after.symptoms), instead=milder)


def run(scenario: Scenario) -> tuple[Causes, bool]:
    """Of a scenario that has not run yet; and whether a check or an expectation of its run fails."""
    found = _run(scenario, math.inf)
    assert found is not None
    return found


def _run(scenario: Scenario, deadline_s: float) -> tuple[Causes, bool] | None:
    """The causes of another run, and whether it fails; None: there was no time."""
    evidence, stop = Evidence(), Stop()
    late = False
    events = 0

    def watch(time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        nonlocal late, events
        events += 1
        if events % 256 == 0 and not late and time.monotonic() > deadline_s:
            late = True
            stop.now()
        evidence.feed(time_ns, actor, kind, data)

    if time.monotonic() > deadline_s:
        return None
    execution = executions.execute(scenario, watcher=watch, stop=stop, judge=judging.Judge(scenario))
    if late:
        return None
    evidence.over()
    resolved = scenario.resolved.get("spec")
    evidence.document = resolved if isinstance(resolved, dict) else {}
    return finding.causes(evidence), bool(siblings.broken(execution))


def _effects(before: tuple[Link, ...], after: tuple[Link, ...]) -> tuple[Effect, ...]:
    """How many of each sort there are with and without it."""
    counts = {one.kind: one for one in after}
    found = []
    for one in before:
        other = counts.get(one.kind)
        found.append(Effect(WHAT.get(one.kind, one.kind), one.unit, one.count, other.count if other is not None else 0))
    known = {one.kind for one in before}
    found += [Effect(WHAT.get(one.kind, one.kind), one.unit, 0, one.count) for one in after if one.kind not in known]
    changed = [one for one in found if one.before != one.after]
    return tuple(sorted(changed, key=lambda one: -abs(one.before - one.after))[:MOST_EFFECTS])


WHAT = {
    "waiting": "waiting for a node", "unready pod": "not ready", "unready": "not ready", "killed": "OOM-killed",
    "restarts": "crashing", "pulling": "without their image", "pressure": "under pressure", "missing": "lacking pods",
    "refused": "refused", "slow": "slow", "throttled": "refused by an overloaded server", "late": "starting late",
    "drain": "whose drain waits", "budget": "exceeded",
}  # fmt: skip
"""What is said of them after their unit."""
