"""``limitedResources`` of the admission configuration: what may not be used without a quota that covers it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects.quotas.scopes import Selector


@dataclass(frozen=True, slots=True)
class LimitedResource:
    """One rule."""

    group: str
    plural: str
    contains: tuple[str, ...]
    """Resources whose names contain one of these are limited (``matchContains``)."""
    scopes: tuple[Selector, ...]
    """Objects in one of these scopes are limited, whatever their kind (``matchScopes``)."""


def read(rules: Iterable[Mapping[str, Any]]) -> tuple[LimitedResource, ...]:
    """From plain data with the keys of ``LimitedResource`` of ``apiserver.config.k8s.io/v1``."""
    return tuple(
        LimitedResource(
            rule.get("apiGroup", ""),
            rule["resource"],
            tuple(rule.get("matchContains") or ()),
            tuple(
                Selector(one["scopeName"], one.get("operator", ""), tuple(one.get("values") or ()))
                for one in rule.get("matchScopes") or ()
            ),
        )
        for rule in rules
    )
