"""Which checks a level has in a version, and what they say together (``policy/registry.go``)."""

from __future__ import annotations

from functools import lru_cache

from kemu.emulated.apiserver.admission.pod_security import baseline, restricted
from kemu.emulated.apiserver.admission.pod_security.baseline import Check
from kemu.emulated.apiserver.admission.pod_security.policies import BASELINE, PRIVILEGED, Standard
from kemu.emulated.apiserver.admission.pod_security.visits import Metadata, Spec, Violation

NEWEST = max(
    *(since for versions in baseline.CHECKS.values() for since, _ in versions),
    *(one.since for versions in restricted.CHECKS.values() for one in versions),
)
"""No check has changed after this minor version."""


def violations(standard: Standard, metadata: Metadata, spec: Spec) -> list[Violation]:
    found = [check(metadata, spec) for check in _checks(standard)]
    return [one for one in found if one is not None]


def detail(found: list[Violation]) -> str:
    return ", ".join([f"{one.reason} ({one.detail})" if one.detail else one.reason for one in found])


def reason(found: list[Violation]) -> str:
    return ", ".join([one.reason for one in found])


@lru_cache(maxsize=256)
def _checks(standard: Standard) -> tuple[Check, ...]:
    if standard.level == PRIVILEGED:
        return ()
    minor = NEWEST if standard.minor is None else min(standard.minor, NEWEST)
    chosen: dict[str, Check] = {}
    for name, versions in baseline.CHECKS.items():
        for since, check in versions:
            if since <= minor:
                chosen[name] = check
    if standard.level == BASELINE:
        return tuple(chosen.values())
    for name, stricter in restricted.CHECKS.items():
        for one in stricter:
            if one.since <= minor:
                chosen[name] = one.check
                chosen.pop(one.instead_of, None)
    return tuple(chosen.values())
