"""What the labels of a namespace say of its pods (``pod-security-admission/api``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from kemu.emulated.objects.validation import causes
from kemu.errors import Cause

PREFIX = "pod-security.kubernetes.io/"
PRIVILEGED, BASELINE, RESTRICTED = "privileged", "baseline", "restricted"
LEVELS = (PRIVILEGED, BASELINE, RESTRICTED)
"""From what allows the most to what allows the least."""
LATEST = "latest"

_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)", re.ASCII)
_MAX_MINOR = (1 << 63) - 1


class Standard(NamedTuple):
    level: str
    minor: int | None
    """Of Kubernetes 1.x; None: the latest."""

    def __str__(self) -> str:
        return f"{self.level}:{LATEST if self.minor is None else f'v1.{self.minor}'}"


class Policy(NamedTuple):
    enforce: Standard
    audit: Standard
    warn: Standard

    @property
    def allows_everything(self) -> bool:
        return self.enforce.level == self.warn.level == self.audit.level == PRIVILEGED


_EVERYTHING = Standard(PRIVILEGED, None)
DEFAULT = Policy(_EVERYTHING, _EVERYTHING, _EVERYTHING)


def has_labels(labels: Mapping[str, str]) -> bool:
    return any(name.startswith(PREFIX) for name in labels)


def read(labels: Mapping[str, str]) -> tuple[Policy, list[Cause]]:
    """The policy, and what is wrong with the labels. What enforces fails closed, the rest fails open."""
    found: list[Cause] = []
    standards = {
        mode: Standard(_level(labels, mode, found), _minor(labels, mode, found))
        for mode in ("enforce", "audit", "warn")
    }
    policy = Policy(**standards)
    enforce = policy.enforce
    is_stated = labels.get(f"{PREFIX}enforce") in LEVELS
    if f"{PREFIX}warn" not in labels and is_stated and is_stricter(enforce.level, policy.warn.level):
        minor = policy.warn.minor if f"{PREFIX}warn-version" in labels else enforce.minor
        policy = policy._replace(warn=Standard(enforce.level, minor))
    return policy, found


def is_stricter(one: str, other: str) -> bool:
    return LEVELS.index(one) > LEVELS.index(other)


def _level(labels: Mapping[str, str], mode: str, found: list[Cause]) -> str:
    value = labels.get(PREFIX + mode)
    if value is None:
        return PRIVILEGED
    if value in LEVELS:
        return value
    found.append(causes.invalid(_path(mode), value, f"must be one of {', '.join(LEVELS)}"))
    return RESTRICTED if mode == "enforce" else PRIVILEGED


def _minor(labels: Mapping[str, str], mode: str, found: list[Cause]) -> int | None:
    value = labels.get(f"{PREFIX}{mode}-version", LATEST)
    if value == LATEST:
        return None
    match = _VERSION.fullmatch(value)
    if match is not None and int(match[1]) <= _MAX_MINOR:
        return int(match[1])
    found.append(causes.invalid(_path(f"{mode}-version"), value, 'must be "latest" or "v1.x"'))
    return None


def _path(label: str) -> str:
    return f"metadata.labels[{PREFIX}{label}]"
