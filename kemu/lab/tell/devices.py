"""Devices in words: what a pod that waits for one asks for, and who holds it."""

from __future__ import annotations

from kemu.lab.checks.history import History, parsed
from kemu.lab.checks.history.claims import text_of
from kemu.lab.checks.history.facts import Fact, PodHistory
from kemu.lab.checks.history.stores import POD_PREFIX
from kemu.runtime.words import short

_NAMED = 3
"""Holders that are named one by one."""
_NO_DEVICES = "cannot allocate all claims"
"""Of the plugin DynamicResources."""


def who_holds(history: History, pod: PodHistory, fact: Fact) -> str:
    """Of a pod for which no device was free at an attempt: what its claims ask for, and who had it, as the rest of a
    sentence; empty: it failed for another reason."""
    value = history.values.get(f"{POD_PREFIX}{pod.key}")
    if _NO_DEVICES not in fact.message or value is None:
        return ""
    message = parsed.pod(value)
    if message.metadata.uid != pod.uid:
        return ""
    said = []
    for key in history.claims.of_pod(message):
        if history.claims.now[key].status.HasField("allocation"):
            continue
        wants = ", ".join(f"{count} of class {name}" for name, count in history.claims.wanted(key).items())
        held = history.claims.holders(key, fact.time_ns)
        by = [f"{text_of(one.device)} by {claim(history, one.claim, one.pod)}" for one in held]
        taken = f"held are {_some(by)}" if by else "no device of that class is held"
        said.append(f"claim {short(key)} wants {wants}; {taken}")
    return "".join(f"; {one}" for one in said)


def claim(history: History, key: str, uid: str) -> str:
    """``claim x of pod-0``"""
    pod = history.pods.get(uid)
    return f"claim {short(key)} of {short(pod.key)}" if pod is not None else f"claim {short(key)}"


def _some(holders: list[str]) -> str:
    if len(holders) <= _NAMED:
        return ", ".join(holders)
    return f"{', '.join(holders[: _NAMED - 1])} and {len(holders) - _NAMED + 1} more"
