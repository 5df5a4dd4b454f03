"""Requests that are made as another user (``endpoints/filters/impersonation``)."""

from __future__ import annotations

import urllib.parse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from kemu import errors
from kemu.emulated.gateway.authentication import authenticators
from kemu.emulated.objects import identities
from kemu.emulated.objects.identities import User

USER, GROUP, UID = "impersonate-user", "impersonate-group", "impersonate-uid"
EXTRA = "impersonate-extra-"
_GROUP = "authentication.k8s.io"


class Right(NamedTuple):
    """What a user must have the right to impersonate."""

    group: str
    resource: str
    namespace: str
    name: str
    subresource: str = ""


Allows = Callable[[User, Right], Awaitable[bool]]
"""Whether a user has a right."""


async def impersonated(user: User, headers: Sequence[tuple[str, str]], allows: Allows) -> User:
    """Who a request is made as: ``user``, unless it says otherwise. ``headers``: names in lower case.

    Raises Forbidden where the user may not, BadRequest for groups without a user.
    """
    name = next((value for key, value in headers if key == USER), "")
    groups = [value for key, value in headers if key == GROUP and value]
    uid = next((value for key, value in headers if key == UID), "")
    extra: dict[str, list[str]] = {}
    for key, value in headers:
        if key.startswith(EXTRA):
            extra.setdefault(urllib.parse.unquote(key.removeprefix(EXTRA)), []).append(value)
    others = [*([uid] if uid else []), *extra]
    if not name:
        if groups or others:
            raise errors.BadRequest(f"requested [{', '.join(groups or others)}] without impersonating a user")
        return user
    for right in _rights(name, groups, uid, extra):
        if not await allows(user, right):
            where = f' in the namespace "{right.namespace}"' if right.namespace else " at the cluster scope"
            resource = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
            kind = f"{right.resource}.{right.group}" if right.group else right.resource
            text = f'{kind} "{right.name}" is forbidden: User "{user.name}" cannot impersonate resource '
            text += f'"{resource}" in API group "{right.group}"{where}'
            raise errors.Forbidden(text, kind=right.resource, name=right.name)
    if not groups:
        found = identities.of_name(name).groups if name.startswith(identities.SERVICE_ACCOUNT_PREFIX) else ()
        groups = [one for one in found if one != identities.AUTHENTICATED]
    if name == identities.ANONYMOUS.name:
        acting = User(name, tuple(dict.fromkeys([*groups, identities.UNAUTHENTICATED])))
    else:
        acting = authenticators.authenticated(name, groups)
    return acting._replace(uid=uid, extra=tuple((key, tuple(values)) for key, values in sorted(extra.items())))


def _rights(name: str, groups: Sequence[str], uid: str, extra: Mapping[str, Sequence[str]]) -> list[Right]:
    rights = [Right("", "users", "", name)]
    if name.startswith(identities.SERVICE_ACCOUNT_PREFIX):
        namespace, _, account = name.removeprefix(identities.SERVICE_ACCOUNT_PREFIX).partition(":")
        rights = [Right("", "serviceaccounts", namespace, account)]
    rights += [Right("", "groups", "", group) for group in groups]
    rights += [Right(_GROUP, "userextras", "", value, key) for key, values in extra.items() for value in values]
    return [*rights, Right(_GROUP, "uids", "", uid)] if uid else rights
