"""Checks of single values, and rules that hold for the fields at given paths: what most kinds have in common.

Checks run in the order in which a kind calls them, as the order of causes is that of Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.objects import names
from kemu.emulated.objects.facts import go_types
from kemu.emulated.objects.plain import Json
from kemu.emulated.objects.validation.causes import IMMUTABLE, duplicate, invalid, not_supported, required, too_long
from kemu.errors import Cause
from kemu.messages.k8s import meta_v1_pb2

NOT_NEGATIVE = "must be greater than or equal to 0"
POSITIVE = "must be greater than zero"

Choices = str | Sequence[str]
"""A named string type of :mod:`kemu.emulated.objects.facts`, or texts in the order in which Kubernetes lists them."""


def not_negative(value: int, path: str, found: list[Cause]) -> None:
    if value < 0:
        found.append(invalid(path, value, NOT_NEGATIVE))


def positive(value: int, path: str, found: list[Cause]) -> None:
    if value <= 0:
        found.append(invalid(path, value, POSITIVE))


def port(value: int, path: str, found: list[Cause]) -> None:
    if not 1 <= value <= 65535:
        found.append(invalid(path, value, "must be between 1 and 65535, inclusive"))


def port_or_name(value: meta_v1_pb2.IntOrString, path: str, found: list[Cause]) -> None:
    """``ValidatePortNumOrName``"""
    if value.type:
        found.extend(invalid(path, value.strVal, problem) for problem in names.port_name(value.strVal))
    else:
        port(value.intVal, path, found)


def int_or_percent(value: meta_v1_pb2.IntOrString, path: str, found: list[Cause]) -> None:
    """``ValidatePositiveIntOrPercent``"""
    if value.type == 0:
        not_negative(value.intVal, path, found)
    elif percent(value) is None:
        detail = (
            "a valid percent string must be a numeric string followed by an ending '%' "
            "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        )
        found.append(invalid(path, value.strVal, detail))


def at_most_all(value: meta_v1_pb2.IntOrString, path: str, found: list[Cause]) -> None:
    """``IsNotMoreThan100Percent``"""
    if (percent(value) or 0) > 100:
        found.append(invalid(path, value.strVal, "must not be greater than 100%"))


def percent(value: meta_v1_pb2.IntOrString) -> int | None:
    """None: it is none."""
    number = value.strVal.removesuffix("%").lstrip("0") or "0"
    if not value.type or not re.fullmatch(r"[0-9]+%", value.strVal, re.ASCII):
        return None
    return int(number[:10])


def supported(value: str, path: str, choices: Choices, found: list[Cause]) -> None:
    """A value that may be empty."""
    if value:
        listed(value, path, choices, found)


def choice(value: str, path: str, choices: Choices, found: list[Cause]) -> None:
    """A value that must be there."""
    if value:
        listed(value, path, choices, found)
    else:
        found.append(required(path))


def listed(value: str, path: str, choices: Choices, found: list[Cause]) -> None:
    """A value of which Kubernetes says that it is not supported even if it is empty."""
    supported = go_types.values(choices) if isinstance(choices, str) else choices
    if value not in supported:
        found.append(not_supported(path, value, supported))


def name(name: str, path: str, rule: Callable[[str], Sequence[str]], found: list[Cause]) -> None:
    """A name that may be empty."""
    if name:
        found.extend(invalid(path, name, problem) for problem in rule(name))


def needed_name(name: str, path: str, rule: Callable[[str], Sequence[str]], found: list[Cause]) -> None:
    """A name that must be there."""
    if name:
        found.extend(invalid(path, name, problem) for problem in rule(name))
    else:
        found.append(required(path))


def domain_prefixed_path(text: str, path: str, found: list[Cause]) -> None:
    """``IsDomainPrefixedPath``"""
    domain, _, rest = text.partition("/")
    if not text:
        found.append(required(path))
    elif not domain or not rest:
        found.append(invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    else:
        found.extend(invalid(path, domain, problem) for problem in names.dns_subdomain(domain))
        found.extend(invalid(path, rest, problem) for problem in names.http_path(rest))


def unique(key: Hashable, seen: dict[Any, None], path: str, shown: Json | Message, found: list[Cause]) -> None:
    """``seen``: the keys of the elements before, to which this one is added."""
    if key in seen:
        found.append(duplicate(path, shown))
    seen[key] = None


def conditions(given: Sequence[meta_v1_pb2.Condition], path: str, found: list[Cause]) -> None:
    """``ValidateConditions`` of ``metav1``"""
    seen: dict[Any, None] = {}
    for index, one in enumerate(given):
        here = f"{path}[{index}]"
        unique(one.type, seen, f"{here}.type", one.type, found)
        found.extend(invalid(f"{here}.type", one.type, problem) for problem in names.label_key(one.type))
        listed(one.status, f"{here}.status", _STATUSES, found)
        if one.observedGeneration < 0:
            found.append(invalid(f"{here}.observedGeneration", one.observedGeneration, _NOT_BELOW_ZERO))
        if not one.HasField("lastTransitionTime"):
            found.append(required(f"{here}.lastTransitionTime"))
        needed_name(one.reason, f"{here}.reason", names.condition_reason, found)
        for field, limit in (("reason", _LONGEST_REASON), ("message", _LONGEST_MESSAGE)):
            if len(getattr(one, field).encode()) > limit:
                found.append(too_long(f"{here}.{field}", limit))


_STATUSES = ("False", "True", "Unknown")
_NOT_BELOW_ZERO = "must be greater than or equal to zero"
_LONGEST_REASON, _LONGEST_MESSAGE = 1024, 32 * 1024


# Rules ----------------------------------------------------------------------------------------------------------------


def fixed(*paths: str, detail: str = IMMUTABLE) -> Callable[[Message, Message, list[Cause]], None]:
    """An update may not change these fields."""
    getters = [(path, attrgetter(path)) for path in paths]

    def check(new: Message, old: Message, found: list[Cause]) -> None:
        for path, get in getters:
            value, before = get(new), get(old)
            if isinstance(value, Mapping):
                value, before = dict(value), dict(before)
            if value != before:
                found.append(invalid(path, value, detail))

    return check
