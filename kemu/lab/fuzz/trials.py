"""One scenario: its run, its run again, its run under a relation, and what is wrong with them."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kemu import errors
from kemu.lab.exploration import executions
from kemu.lab.exploration.causes import Names, of_expectation
from kemu.lab.exploration.meters import TooLongError
from kemu.lab.exploration.processes.tasks import SLOW
from kemu.lab.fuzz import relations
from kemu.lab.fuzz.drawing import drawn
from kemu.lab.fuzz.drawing.dice import Dice
from kemu.lab.fuzz.facts import Facts, Witness, Wrong
from kemu.lab.fuzz.features import Levels, Plan
from kemu.lab.fuzz.oracles import registry
from kemu.lab.scenario.loading import loader

Data = dict[str, Any]

MOST_EVENTS = 15_000
"""A run of more is given up: a night has room for ten thousand scenarios because none is large."""
EVERY_AGAIN = 4
"""Every fourth scenario runs twice."""

CLIENTS = "clients"
"""What :mod:`kemu.lab.fuzz.clients` does, by the name of a relation."""
EVERY_WITH_CLIENTS = 40

REFUSED, BROKEN, DIGEST = "refused", executions.BROKEN, "same-digest"
UNKNOWN = "verdict-unknown"


@dataclass(frozen=True)
class Finding:
    """A way in which a scenario fails."""

    id: str
    """The id of a check or an oracle; ``the-run-broke``, ``same-digest``, ``refused``, ``slow``, or the name of a
    relation."""
    cause: str
    """The detail without the particulars: equal causes are equal."""
    detail: str
    data: Data = field(repr=False)
    """The document that fails."""
    relation: str = ""
    """Under which it fails, if both runs hold by themselves."""

    @property
    def key(self) -> tuple[str, str]:
        return self.id, self.cause


@dataclass(frozen=True)
class Run:
    """One run, judged."""

    facts: Facts | None
    """None: it was given up, or broke."""
    digest: str
    wrong: tuple[Wrong, ...]
    causes: tuple[str, ...]
    is_long: bool = False


@dataclass(frozen=True)
class Record:
    """What became of one scenario."""

    number: int
    levels: Levels
    findings: tuple[Finding, ...]
    seconds: float
    runs: int = 0
    events: int = 0
    is_long: bool = False
    relation: str = ""
    """That was asked; empty: none had anything to say."""
    is_compared: bool = False
    """Whether its outcome was settled, so that there was something to compare."""
    kinds: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    virtual_s: float = 0.0


def run(data: Data, most_events: int = MOST_EVENTS) -> Run:
    """Load a document, run it and judge it. Raises ScenarioError for one that cannot be loaded."""
    witness = Witness(most_events)
    try:
        execution = executions.execute(loader.of_data(data, f"{data['metadata']['name']}.yaml", None), watcher=witness)
    except TooLongError:
        return Run(None, "", (), (), is_long=True)
    if execution.error is not None and isinstance(execution.error.__cause__, TooLongError):
        return Run(None, "", (), (), is_long=True)
    wrong = [Wrong(failure.id, failure.detail) for failure in execution.failures]
    causes = [failure.cause for failure in execution.failures]
    if execution.error is not None:
        return Run(None, execution.digest, tuple(wrong), tuple(causes))
    if execution.outcome == executions.UNKNOWN:
        wrong.append(Wrong(UNKNOWN, "; ".join(execution.history.gaps) or "nothing could be judged"))
        causes.append("unknown")
    run_facts = Facts(execution, witness)
    names = Names(execution.scenario.resolved, execution.history)
    for found in registry.ask(run_facts):
        wrong.append(found)
        causes.append(of_expectation(found.detail.split("; ")[0], names))
    return Run(run_facts, execution.digest, tuple(wrong), tuple(causes))


def findings(found: Run, data: Data) -> list[Finding]:
    return [Finding(one.id, cause, one.detail, data) for one, cause in zip(found.wrong, found.causes, strict=True)]


def under(data: Data, name: str, base: Run) -> tuple[list[Finding], int, bool]:
    """What a relation finds; how many runs that took, and whether there was something to compare."""
    if name == CLIENTS:
        return _with_clients(data, base)
    relation = relations.RELATIONS[name]
    changed = relation.change(data, Dice(data["spec"].get("seed", 0), 0, "relation", name))
    if changed is None:
        return [], 0, False
    other = run(changed)
    if other.is_long or base.is_long:
        return [], 1, False
    if other.wrong:
        return findings(other, changed), 1, False
    if base.facts is None or other.facts is None:
        return [], 1, False
    if relation.same_digest:
        if base.digest == other.digest:
            return [], 1, True
        return [Finding(name, "digest", "the run is another one", data, name)], 1, True
    one, two = relations.outcome(base.facts), relations.outcome(other.facts)
    if one is None or two is None:
        return [], 1, False
    different = relations.differences(one, two)
    if not different:
        return [], 1, bool(one.keys() & two.keys())
    kinds = sorted({item.split("/")[1] for item in different if "/" in item})
    return [Finding(name, ", ".join(kinds), "; ".join(different), data, name)], 1, True


def _with_clients(data: Data, base: Run) -> tuple[list[Finding], int, bool]:
    # It needs what kemu up needs.
    from kemu.lab.fuzz import clients

    if base.facts is None or not clients.suits(data):
        return [], 0, False
    found = [Finding(name, name, detail, data, CLIENTS) for name, detail in clients.wrong(data, base.facts)]
    return found, 2, True


def judged(data: Data, names: Sequence[str] = (), *, again: bool = True) -> tuple[list[Finding], Run]:
    """All that is wrong with a scenario by itself and under these relations."""
    try:
        base = run(data)
    except errors.KemuError as error:
        return [Finding(REFUSED, type(error).__name__, str(error), data)], Run(None, "", (), ())
    except Exception as error:
        # A bug of kemu's own, outside of the actors.
        where = traceback.extract_tb(error.__traceback__)[-1]
        cause = f"{type(error).__name__} in {where.name}"
        return [Finding(BROKEN, cause, f"{cause} ({where.lineno}): {error}", data)], Run(None, "", (), ())
    found = findings(base, data)
    if again and not base.is_long:
        second = run(data)
        if second.digest != base.digest:
            found.append(Finding(DIGEST, "digest", f"{base.digest} and {second.digest}", data))
    if not found:
        for name in names:
            found += under(data, name, base)[0]
    return found, base


@dataclass(frozen=True)
class Source:
    """What all trials of a search have in common."""

    seed: int
    pinned: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """One scenario of a search, to be carried out in whichever process."""

    number: int

    kin = None
    """It shares nothing with others."""

    def carry_out(self, source: Source) -> Record:
        begun_s = time.perf_counter()
        levels = _plan(source).levels(self.number)
        scenario = drawn.draw(source.seed, self.number, levels)
        data, runs, is_compared, name = scenario.data, 1, False, ""
        found, base = judged(data, again=self.number % EVERY_AGAIN == 0)
        runs += self.number % EVERY_AGAIN == 0
        if not found and not base.is_long:
            # Not the first one drawn: one that has something to say.
            names = Dice(source.seed, self.number, "relations").shuffled(list(relations.RELATIONS))[:3]
            if self.number % EVERY_WITH_CLIENTS == EVERY_WITH_CLIENTS - 1:
                names = [CLIENTS, *names]
            for name in names:
                try:
                    found, more, is_compared = under(data, name, base)
                except errors.KemuError as error:
                    found, more = [Finding(REFUSED, f"under {name}", str(error), data, name)], 1
                runs += more
                if more:
                    break
        facts = base.facts
        return Record(
            self.number,
            levels,
            tuple(found),
            time.perf_counter() - begun_s,
            runs,
            facts.execution.event_count if facts is not None else 0,
            base.is_long,
            name,
            is_compared,
            facts.witness.kinds if facts is not None else Counter(),
            facts.witness.reasons if facts is not None else Counter(),
            facts.end_ns / 1e9 if facts is not None else 0.0,
        )

    def given_up(self, why: str, seconds: float) -> Record:
        detail = f"it took more than {seconds:.0f} s" if why == SLOW else "the process that ran it died"
        return Record(self.number, {}, (Finding(why, why, detail, {}),), seconds)

    def refused(self, why: str) -> Record:
        lines = why.strip().splitlines()
        return Record(self.number, {}, (Finding(BROKEN, lines[-1] if lines else "", why, {}),), 0.0)


_PLANS: dict[tuple[int, tuple[tuple[str, str], ...]], Plan] = {}


def _plan(source: Source) -> Plan:
    key = source.seed, tuple(sorted(source.pinned.items()))
    if key not in _PLANS:
        _PLANS.clear()
        _PLANS[key] = Plan(source.seed, source.pinned)
    return _PLANS[key]
