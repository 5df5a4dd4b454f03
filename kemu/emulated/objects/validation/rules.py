"""What the checks of a kind consist of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects import names
from kemu.emulated.objects.validation.metadata import NameRule
from kemu.errors import Cause
from kemu.messages.k8s.objects import KubernetesObject

Check = Callable[[Any, list[Cause]], None]
UpdateCheck = Callable[[Any, Any, list[Cause]], None]


def nothing(obj: KubernetesObject, found: list[Cause]) -> None:
    """For kinds of which only the metadata are checked."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The checks of one kind."""

    create: Check = nothing
    update: UpdateCheck | None = None
    """None: an update is checked like a new object."""
    status_update: UpdateCheck | None = None
    """None: any status is accepted."""
    name_rule: NameRule = names.dns_subdomain
