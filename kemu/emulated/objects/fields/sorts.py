"""The sorts of fields: a field acts, cannot matter in kemu (for a stated reason), or is refused by name.

A table gives each field its sort, by ``Message.field``. The tables are written with :func:`message`, one call for each
message; :mod:`kemu.emulated.objects.fields.tables` puts them together.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class Reason(enum.Enum):
    """Why a field cannot matter in kemu."""

    CONTAINERS = "only a process in a container, or the container runtime, would notice: kemu runs no containers"
    NETWORK = "only traffic would notice: nothing is sent between the pods of kemu"
    IDENTITY = "kemu has no credentials or certificates of pods: no container calls the API server"
    CONTENT = "what it names is taken to exist at once, and nobody reads its content"
    SERVER = "the API server overwrites or drops what a user writes here, as in Kubernetes"
    RECORDED = "kept and shown; no component decides by it, in Kubernetes either"
    UNUSED = "only what kemu refuses would use it"
    PROCESS = "it tunes the real program (its ports, logs, files, handlers), which kemu does not run"
    COORDINATED = "only coordinated leader election would use it, which is off by default in Kubernetes"
    PROMPT = "kemu acts on every change at once and needs no periodic look"


@dataclass(frozen=True, slots=True)
class Acts:
    """The field does what it does in Kubernetes, with all that is below it. ``note``: how far."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class Parts:
    """The fields of the message have sorts of their own."""


@dataclass(frozen=True, slots=True)
class Harmless:
    """Accepted without effect, with all that is below it."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Refused:
    """Named as an error wherever it is set, unless to one of the values that change nothing."""

    why: str
    unless: tuple[Any, ...] = ()
    gate: str = ""
    """The feature gate of a scheduler with which the field acts."""


Sort = Acts | Parts | Harmless | Refused
Table = Mapping[str, Sort]
"""By ``Message.field``, or by the path of a field of a configuration."""


def message(
    name: str,
    *,
    acts: str = "",
    parts: str = "",
    harmless: Mapping[Reason, str] | None = None,
    refused: Mapping[str, str | Refused] | None = None,
    notes: Mapping[str, str] | None = None,
) -> dict[str, Sort]:
    """The sorts of the fields of a message. Names stand in one text, separated by blanks; ``*`` is every field.

    ``notes``: how far fields act that do so in part.
    """
    sorts: dict[str, Sort] = {}

    def put(fields: str, sort: Sort) -> None:
        for field in fields.split():
            key = f"{name}.{field}"
            if key in sorts:
                raise ValueError(f"{key} is sorted twice")
            sorts[key] = sort

    put(acts, Acts())
    put(parts, Parts())
    for reason, fields in (harmless or {}).items():
        put(fields, Harmless(reason))
    for field, why in (refused or {}).items():
        put(field, why if isinstance(why, Refused) else Refused(why))
    for field, note in (notes or {}).items():
        put(field, Acts(note))
    return sorts
