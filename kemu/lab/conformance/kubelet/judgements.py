"""How decisions of the kubelet and of the node controllers compare with the recorded ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kemu.emulated.objects.amounts import floats
from kemu.lab.conformance import comparisons

Json = dict[str, Any]

TOLERANCE_S = 1
"""In node failures, as the record proposes: their state was noted once a second."""
_SETS = ("thresholds", "thresholdsObserved", "thresholdsMet")


def agrees(expect: Json, answered: Json) -> list[str]:
    """What differs from the record. Of ``outcomes`` any one is right; some lists are sets."""
    return comparisons.compare(expect, answered, _special)


def _special(path: str, recorded: Any, answered: Any, found: list[str]) -> bool:
    name = path.rpartition(".")[2]
    if name == "outcomes" and isinstance(recorded, list) and isinstance(answered, list) and len(answered) == 1:
        _compare_outcomes(path, recorded, answered[0], found)
    elif name in _SETS:
        here, there = (comparisons.set_of([_plain(one) for one in many or ()]) for many in (recorded, answered))
        found.extend(f"{path}: kemu lacks {one}" for one in here if one not in there)
        found.extend(f"{path}: only kemu has {one}" for one in there if one not in here)
    elif name == "evictionSignal" and isinstance(recorded, str) and isinstance(answered, str):
        if not _is_signal(recorded.split(), answered.split()):
            found.append(f"{path}: recorded {recorded!r}, kemu {answered!r}")
    elif "amounts." in path and isinstance(recorded, list) and isinstance(answered, list):
        # The rows of thresholds that share a signal, in the order of their texts.
        if sorted(recorded) != sorted(answered):
            found.append(f"{path}: recorded {recorded}, kemu {answered}")
    elif path.startswith("rankings.") and "." in path[9:] and isinstance(recorded, dict) and "groups" in recorded:
        _compare_ranking(path, recorded["groups"], answered, found)
    elif isinstance(recorded, dict) and isinstance(answered, dict) and "errorCategory" in recorded:
        if recorded["errorCategory"] != answered.get("errorCategory"):
            found.append(f"{path}: recorded {recorded['errorCategory']}, kemu {answered.get('errorCategory')}")
    elif isinstance(recorded, dict) and isinstance(answered, dict) and "nodeChanges" in recorded:
        found.extend(f"{path}: {difference}" for difference in _compare_courses(recorded, answered))
    else:
        return False
    return True


def _compare_outcomes(path: str, recorded: list[Any], answered: Mapping[str, Any], found: list[str]) -> None:
    nearest: list[str] | None = None
    for index, outcome in enumerate(recorded):
        differences: list[str] = []
        if not _special(f"{path}[{index}]", outcome, answered, differences):
            differences = comparisons.compare(outcome, answered, _special)
        if not differences:
            return
        if nearest is None or len(differences) < len(nearest):
            nearest = [f"{path}[{index}].{difference}" for difference in differences]
    found.extend(nearest if nearest is not None else [f"{path}: nothing was recorded"])


def _compare_ranking(path: str, groups: list[list[str]], answered: Mapping[str, Any], found: list[str]) -> None:
    """In any order within a group."""
    order = (answered or {}).get("order") or []
    if len(order) != sum(len(group) for group in groups or ()):
        found.append(f"{path}: recorded {groups}, kemu {order}")
        return
    position = 0
    for group in groups or ():
        if sorted(group) != sorted(order[position : position + len(group)]):
            found.append(f"{path}: recorded {groups}, kemu {order}")
            return
        position += len(group)


def _is_signal(recorded: list[str], answered: list[str]) -> bool:
    """Equal; or the record names one of several: the kubelet counts the evictions of a pass by signal, and some records
    state the first count only. Which pod was evicted for which limit is in the messages, which are compared in full."""
    return recorded == answered or (len(recorded) == 1 and recorded[0] in answered)


def _plain(threshold: Json) -> Json:
    """A threshold whose percentage is a number: its text has more than one form."""

    def number(amount: object) -> Any:
        if isinstance(amount, dict) and "percentage" in amount:
            value = floats.to_32_bits(float(amount["percentage"]))
            return {**amount, "percentage": f"{value!r} "}
        return amount

    plain: Json = number(threshold)
    return {**plain, "minReclaim": number(plain["minReclaim"])} if plain.get("minReclaim") else plain


def _compare_courses(recorded: Json, answered: Json) -> list[str]:
    """Between two courses of events: times may be off by a second."""
    found: list[str] = []
    for what, name in (("nodeChanges", "node"), ("deletions", "pod"), ("podsMarkedNotReady", "pod")):
        here, there = (_by_name(course.get(what) or (), name) for course in (recorded, answered))
        for key in sorted({*here, *there}):
            ours, theirs = there.get(key, []), here.get(key, [])
            same = len(ours) == len(theirs) and all(
                abs(one[0] - other[0]) <= TOLERANCE_S and one[1] == other[1]
                for one, other in zip(ours, theirs, strict=True)
            )
            if not same:
                found.append(f"{what} of {key}: recorded {theirs}, kemu {ours}")
    return found


def _by_name(entries: Iterable[Mapping[str, Any]], name: str) -> dict[str, list[tuple[float, Json]]]:
    found: dict[str, list[tuple[float, Json]]] = {}
    for entry in entries:
        rest = {key: entry[key] or None for key in sorted(entry) if key not in (name, "atSeconds")}
        found.setdefault(entry[name], []).append((entry["atSeconds"], rest))
    return found
