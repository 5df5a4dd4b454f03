"""The variable ``authorizer``: expressions describe an access with it, the caller's function decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from kemu.emulated.cel import types
from kemu.emulated.cel.values import NO_OVERLOAD, Error, Opaque, Value

#: The declared type of an `Authorizer`.
AUTHORIZER = types.abstract("kubernetes.authorization.Authorizer")
#: The declared type of a `ResourceCheck`, such as the variable ``authorizer.requestResource``.
RESOURCE_CHECK = types.abstract("kubernetes.authorization.ResourceCheck")


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


class Incomparable(Opaque):
    """Base of values that equal none, not even themselves."""

    __slots__ = ()
    constant_equality = True

    def equal(self, other: Value) -> Value:
        return other if type(other) is Error else NO_OVERLOAD


class Authorizer(Incomparable):
    """The value of the variable ``authorizer``; `decide` answers accesses. Its declared type is `AUTHORIZER`."""

    __slots__ = ("decide", "user")
    type_name = AUTHORIZER.name

    def __init__(self, decide: Callable[[Access], Decision], user: str | None = None) -> None:
        self.decide = decide
        self.user = user


class ResourceCheck(Incomparable):
    """An access to a resource whose verb is still open. The value of ``authorizer.requestResource`` is one."""

    __slots__ = ("access", "authorizer")
    type_name = RESOURCE_CHECK.name

    def __init__(self, authorizer: Authorizer, access: Access) -> None:
        self.authorizer = authorizer
        self.access = access
