"""Who made the request that is being carried out: what admission has to know of the user."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import NamedTuple

from kemu.emulated.apiserver.authorization.attributes import Attributes
from kemu.emulated.objects.identities import Extra, User


class Requester(NamedTuple):
    node: str
    is_kubelet: bool
    """False: a caller acts as that node."""


NOBODY: Requester | None = None
NODE: ContextVar[Requester | None] = ContextVar("node", default=NOBODY)
"""None: the user is no kubelet."""


class Beside(NamedTuple):
    """What is known of the user beside the name and groups, by which rights go."""

    uid: str
    extra: Extra


BESIDE: ContextVar[Beside | None] = ContextVar("beside", default=None)


def known(user: User) -> User:
    """The user of the request that is being carried out, with all that is known."""
    beside = BESIDE.get()
    return user if beside is None else user._replace(uid=beside.uid, extra=beside.extra)


class Asking(NamedTuple):
    """The user behind a request for which that counts, one about certificates or claims for devices."""

    user: User
    allows: Callable[[Attributes], bool]
    verb: str
    """As authorization names it."""


ASKING: ContextVar[Asking | None] = ContextVar("asking", default=None)
