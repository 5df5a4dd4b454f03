"""Requests that are made as another user (``endpoints/filters/impersonation``).

Four modes need two rights each: to be that user (``impersonate:<mode>``), and to do as that user what the request does
(``impersonate-on:<mode>:<verb>``). Where none of them allows it, the verb ``impersonate`` does, which gives all that
the user may. A right that is taken away ends at once; Kubernetes remembers for ten seconds what it has allowed.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple

from kemu import errors
from kemu.emulated.objects import identities, names
from kemu.emulated.objects.identities import User

USER, GROUP, UID = "impersonate-user", "impersonate-group", "impersonate-uid"
EXTRA = "impersonate-extra-"
NODE_NAME = "authentication.kubernetes.io/node-name"
_GROUP = "authentication.k8s.io"
_MANY = 4
"""From so many groups or values on, the right to all of them is asked about first."""
_MOST_REMEMBERED = 10_000
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


class Right(NamedTuple):
    """What a user must have the right to do, with an object or a path."""

    verb: str
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    path: str = ""

    def forbidden(self, user: User, why: str = "") -> errors.Forbidden:
        """``responsewriters.ForbiddenStatusError``."""
        asks = f'User "{user.name}" cannot {self.verb}'
        if self.path:
            return errors.Forbidden(f'forbidden: {asks} path "{self.path}"')
        qualified = f"{self.resource}.{self.group}" if self.group else self.resource
        what = f'{qualified} "{self.name}"' if self.name else qualified
        combined = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        text = f'{what} is forbidden: {asks} resource "{combined}" in API group "{self.group}" {where}'
        return errors.Forbidden(f"{text}: {why}" if why else text, kind=f"{self.resource}.{self.group}", name=self.name)


Check = Callable[[User, Right], Awaitable[errors.Forbidden | None]]
"""Why a user has no right; None: the user has it."""


class Mode(NamedTuple):
    name: str
    """Empty: the verb ``impersonate`` alone."""
    applies: Callable[[User, User], bool]
    """Whether it is for that user, whom another one wants to be."""

    def right(self, resource: str, name: str, namespace: str = "", subresource: str = "") -> Right:
        verb = f"impersonate:{self.name}" if self.name else "impersonate"
        group = _GROUP if self.name or resource in ("uids", "userextras") else ""
        return Right(verb, group, resource, namespace, name, subresource)


def _node_of(user: User) -> str:
    """Empty: it is not the name of a node's user (``isNodeUsername``)."""
    name = user.name.removeprefix(identities.NODE_PREFIX)
    return "" if name == user.name or names.dns_subdomain(name) else name


def _account_of(user: User) -> tuple[str, str] | None:
    """Namespace and name of a service account (``serviceaccount.SplitUsername``)."""
    parts = user.name.removeprefix(identities.SERVICE_ACCOUNT_PREFIX).split(":")
    if not user.name.startswith(identities.SERVICE_ACCOUNT_PREFIX) or len(parts) != 2:
        return None
    namespace, name = parts
    return None if names.dns_label(namespace) or names.dns_subdomain(name) else (namespace, name)


def _has_name_only(user: User) -> bool:
    return not (user.uid or user.groups or user.extra)


def _is_own_node(wanted: User, user: User) -> bool:
    node = _has_name_only(wanted) and _account_of(user) and _node_of(wanted)
    return bool(node) and dict(user.extra).get(NODE_NAME) == (node,)


_MODES = (
    Mode("associated-node", _is_own_node),
    Mode("arbitrary-node", lambda wanted, user: _has_name_only(wanted) and bool(_node_of(wanted))),
    Mode("serviceaccount", lambda wanted, user: _has_name_only(wanted) and bool(_account_of(wanted))),
    Mode("user-info", lambda wanted, user: not _node_of(wanted) and not _account_of(wanted)),
    Mode("", lambda wanted, user: True),
)
"""In the order in which they are tried."""


async def impersonated(
    user: User, headers: Sequence[tuple[str, str]], asked: Right, check: Check, last: dict[str, Mode]
) -> User:
    """Who a request is made as: ``user``, unless it says otherwise. ``headers``: names in lower case, ``asked``: what
    the request does, ``last``: by the name of a user the mode that allowed it last, which is tried first.

    Raises Forbidden where the user may not, in the words of the first mode; BadRequest for groups without a user.
    """
    wanted = _wanted(headers)
    if wanted is None:
        return user
    first: errors.Forbidden | None = None
    modes = (*((last[user.name],) if user.name in last else ()), *_MODES)
    for mode in dict.fromkeys(modes):
        if not mode.applies(wanted, user):
            continue
        refused = await _refusal(mode, user, wanted, asked, check)
        if refused is None:
            last.pop(user.name, None)
            last[user.name] = mode
            if len(last) > _MOST_REMEMBERED:
                del last[next(iter(last))]
            return _acting(mode, wanted)
        first = first or refused
    assert first is not None
    raise first


def _wanted(headers: Sequence[tuple[str, str]]) -> User | None:
    """The user as the headers say it (``processImpersonationHeaders``); None: they say none."""
    name = next((value for key, value in headers if key == USER), "")
    groups = tuple(value for key, value in headers if key == GROUP)
    uid = next((value for key, value in headers if key == UID), "")
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in headers:
        if key.startswith(EXTRA):
            unescaped = urllib.parse.unquote(key.removeprefix(EXTRA))
            extra[unescaped] = (*extra.get(unescaped, ()), value)
    found = User(name, groups, uid, tuple(sorted(extra.items())))
    if name:
        return found
    if _has_name_only(found):
        return None
    entries = ", ".join(f"{json.dumps(key)}:{_go(values)}" for key, values in found.extra)
    told = f'Name:"", UID:{json.dumps(uid)}, Groups:{_go(groups)}, Extra:map[string][]string'
    told += f"{{{entries}}}" if entries else "(nil)"
    raise errors.BadRequest(f"requested &user.DefaultInfo{{{told}}} without impersonating a user name")


def _go(texts: Sequence[str]) -> str:
    return f"[]string{{{', '.join(map(json.dumps, texts))}}}" if texts else "[]string(nil)"


async def _refusal(mode: Mode, user: User, wanted: User, asked: Right, check: Check) -> errors.Forbidden | None:
    if mode.name and (refused := await check(user, asked._replace(verb=f"impersonate-on:{mode.name}:{asked.verb}"))):
        return refused
    for right, others, problem in _rights(mode, wanted):
        if problem:
            return right.forbidden(user, problem)
        if others and await check(user, right) is None:
            continue
        for one in others or [right]:
            if refused := await check(user, one):
                return refused
    return None


def _rights(mode: Mode, wanted: User) -> Iterator[tuple[Right, list[Right], str]]:
    """What it takes to be that user: a right, those that it stands for, and why it cannot be had at all."""
    account, node = _account_of(wanted), _node_of(wanted)
    named = mode.right("users", wanted.name)
    if account:
        named = mode.right("serviceaccounts", account[1], account[0])
    elif node and mode.name:
        # The right to be the node where one runs is the same on all nodes.
        named = mode.right("nodes", "*" if mode.name == "associated-node" else node)
    yield named, [], ""
    if wanted.uid:
        yield mode.right("uids", wanted.uid), [], ""
    groups = [mode.right("groups", group) for group in wanted.groups]
    if mode.name and "" in wanted.groups:
        yield mode.right("groups", ""), [], "impersonating the empty string group is not allowed"
    if mode.name and identities.MASTERS in wanted.groups:
        yield mode.right("groups", identities.MASTERS), [], "impersonating the system:masters group is not allowed"
    if mode.name and len(groups) >= _MANY:
        yield mode.right("groups", "*"), groups, ""
    else:
        yield from ((one, [], "") for one in groups)
    for key, values in wanted.extra if mode.name else ():
        if problem := _problem_of_extra(key, values):
            yield mode.right("userextras", ""), [], problem
    extras = [mode.right("userextras", value, "", key) for key, values in wanted.extra for value in values]
    if mode.name and len(extras) >= _MANY:
        yield mode.right("userextras", "*", "", "*"), extras, ""
    else:
        yield from ((one, [], "") for one in extras)


def _problem_of_extra(key: str, values: Sequence[str]) -> str:
    """``validateExtra``."""
    if not key:
        return "impersonating the empty string key in extra is not allowed"
    host, _, path = key.partition("/")
    wrong = "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "
    if not host or not path:
        return f'{wrong}{json.dumps(key)}: must be a domain-prefixed path (such as "acme.io/foo")'
    if problems := names.dns_subdomain(host):
        return f"{wrong}{json.dumps(host)}: {problems[0]}"
    if not _PATH.fullmatch(path):
        return f"{wrong}{json.dumps(path)}: Invalid path (regex used for validation is '{_PATH.pattern}')"
    if key != key.lower():
        return f"impersonating a non-lowercase key in extra is not allowed: {json.dumps(key)}"
    return "impersonating the empty string value in extra is not allowed" if "" in values else ""


def _acting(mode: Mode, wanted: User) -> User:
    """That user with the groups that are implied."""
    groups, account = wanted.groups, _account_of(wanted)
    if mode.name and _node_of(wanted):
        groups = (identities.NODES,)
    elif account and not groups:
        groups = (identities.SERVICE_ACCOUNTS, f"{identities.SERVICE_ACCOUNTS}:{account[0]}")
    is_unknown = wanted.name == identities.ANONYMOUS.name or identities.UNAUTHENTICATED in groups
    implied = identities.UNAUTHENTICATED if is_unknown else identities.AUTHENTICATED
    return wanted._replace(groups=groups if implied in groups else (*groups, implied))
