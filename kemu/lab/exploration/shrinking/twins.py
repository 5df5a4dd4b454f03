"""Twins: the run that goes well beside the one that fails.

A safety check that fails says what is wrong whatever the scenario. An expectation, or a detector with a limit, is about
its scenario: ``every pod runs`` fails trivially when the nodes are gone. So where the original goes well with all
safeguards and fixes, or without its holds (or without its faults, too, or without chance in its times), every smaller
scenario has to, as well: it must be that which makes it fail.
"""

from __future__ import annotations

from collections.abc import Callable

from kemu.emulated import variants
from kemu.lab.checks import registry
from kemu.lab.exploration import executions
from kemu.lab.exploration.shrinking import documents
from kemu.lab.exploration.shrinking.candidates import Candidate, Loading, copied
from kemu.lab.exploration.shrinking.trials import Trials, Twin

_SAFETY = frozenset(check.id for check in registry.ALL if not check.detector)


def is_absolute(failure: executions.Failure) -> bool:
    """Whether the failure means something in any scenario."""
    return failure.id in _SAFETY or failure.id == executions.BROKEN


def twin(original: Candidate, trials: Trials, loading: Loading) -> Twin | None:
    """What goes well of the original. None: nothing does, or nothing has to."""
    if is_absolute(trials.failure):
        return None
    kinds: tuple[Callable[[Candidate], Candidate | None], ...] = (
        lambda candidate: _mended(candidate, loading),
        lambda candidate: candidate.with_holds(()),
        lambda candidate: _without_faults(candidate, loading),
        lambda candidate: _without_chance(candidate, loading),
    )
    for kind in kinds:
        other = kind(original)
        if other is not None and other.key != original.key and not trials.fails(other):
            return kind
    return None


def _mended(candidate: Candidate, loading: Loading) -> Candidate | None:
    data = copied(candidate.data)
    for section in ("bugs", "ablate"):
        data["spec"].pop(section, None)
    data["spec"]["fixes"] = list(variants.names(variants.FIX))
    return loading.candidate(data, candidate.holds)


def _without_faults(candidate: Candidate, loading: Loading) -> Candidate | None:
    data = copied(candidate.data)
    data["spec"].pop("chaos", None)
    return loading.candidate(data, ())


def _without_chance(candidate: Candidate, loading: Loading) -> Candidate | None:
    data = documents.with_single_times(candidate.data) or copied(candidate.data)
    data["spec"].pop("chaos", None)
    for way in documents.distributions(data):
        data = documents.changed_at(data, way, documents.constants(documents.at(data, way))[0])
    return loading.candidate(data, ())
