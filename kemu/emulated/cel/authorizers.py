"""The variable ``authorizer``: expressions describe an access with it, the caller's function decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Access:
    """What an expression asks about; a path is asked without resource, a resource without path."""

    user: str | None  # None: the user of the request; else that of a service account
    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """The authorizer's answer; `error` is its failure, if it failed."""

    verdict: Literal["allow", "deny", "no opinion"]
    reason: str = ""
    error: str | None = None


class Authorizer:
    """The value of the variable ``authorizer``; `decide` answers accesses. Its declared type is `AUTHORIZER`."""

    def __init__(self, decide: Callable[[Access], Decision]) -> None:
        self.decide = decide
