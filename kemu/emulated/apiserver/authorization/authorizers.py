"""Asks the authorization modes about a request, and refuses it in Kubernetes' words (``endpoints/filters``).

A caller is known by a text: the name of an actor, or ``<actor> as <user>`` of a caller that acts as another user, with
the groups that were said to be that user's. What it may do is found once for each verb, kind and namespace, so that
nearly all requests cost a look into a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kemu import errors as kemu_errors
from kemu.emulated.apiserver.authorization import attributes, nodes, roles
from kemu.emulated.apiserver.authorization.attributes import Attributes
from kemu.emulated.apiserver.authorization.requesters import Requester
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import identities, resources
from kemu.emulated.objects.identities import User

NODE, RBAC, ALWAYS_ALLOW = "Node", "RBAC", "AlwaysAllow"
MODES = (NODE, RBAC, ALWAYS_ALLOW)
DEFAULT_MODES = (NODE, RBAC)
"""As kubeadm sets them; kube-apiserver itself has AlwaysAllow."""

AS = " as "
MOST_ACTING = 10_000
"""Users that are remembered while others act as them."""

_BY_NAME = frozenset(("leases", "csinodes", "secrets", "configmaps", "serviceaccounts", "persistentvolumes",
                      "persistentvolumeclaims", "volumeattachments"))  # fmt: skip
_ASKS = "review"
_GROUPS_OF_NODES = sorted((identities.NODES, identities.AUTHENTICATED))


class Caller:
    """One user, as it calls."""

    __slots__ = ("allowed", "grants", "requester", "user")

    def __init__(self, user: User, requester: Requester | None, grants: roles.Grants) -> None:
        self.user = user
        self.requester = requester
        """Requester of a kubelet."""
        self.grants = grants
        self.allowed: set[tuple[str, str, str, str]] = set()
        """Verb, kind, subresource and namespace of requests that are allowed whatever their object is."""


class Authorizer:
    def __init__(self, cache: WatchCache, modes: Sequence[str], users: Mapping[str, Mapping[str, Any]]) -> None:
        """``users``: by name their ``groups`` and ``roles``."""
        self._modes = tuple(modes)
        self._users = users
        self._nodes = nodes.NodeAuthorizer(cache)
        self._objects = roles.Objects(cache)
        self._callers: dict[str, Caller] = {}
        self._acting: dict[str, User] = {}
        """Users with groups that a caller has acted as, by their text."""
        self._is_open = ALWAYS_ALLOW in modes
        self._kubelet: Caller | None = None
        """The first one."""

    def check(self, by: str, verb: str, request: attributes.Request) -> Requester | None:
        """``verb`` as the service has it. Returns the node whose kubelet asks. Raises
        :class:`kemu.errors.Forbidden`."""
        caller = self._callers.get(by)
        if caller is None:
            caller = self._enter(by)
        if self._is_open or not caller.grants:
            return caller.requester
        key: tuple[str, str, str, str] | None = None
        if isinstance(request, attributes.PodRequest):
            key = verb, "", "", request.namespace
        elif isinstance(request, attributes.Write):
            where = request.resource
            key = verb, where.resource, getattr(request, "subresource", ""), where.namespace
        if key is not None and key in caller.allowed:
            return caller.requester
        for asked in attributes.of_request(verb, request):
            is_lasting = self._judge(caller, asked)
            # A namespace that stands in the object alone is another one the next time.
            if is_lasting and key is not None and asked.resource not in _BY_NAME and asked.namespace == key[3]:
                caller.allowed.add(key)
        return caller.requester

    def acting_as(self, by: str, name: str, groups: Sequence[str] = ()) -> str:
        """The caller ``by`` wants to act as another user (``Impersonate-User``), who has these groups; without any,
        those of the scenario and those that the name implies. Raises Forbidden."""
        if not self._caller(by).user.is_master and not self._is_open:
            asked = Attributes("impersonate", "", "users", "", "", name, "")
            raise _forbidden(self._caller(by).user, asked, "")
        if not groups and "'" not in name and '"' not in name:
            return f"{by}{AS}{name}"
        # With the name in quotes, no name can look like another one with groups.
        text = f"{by}{AS}{name!r} of {', '.join(map(repr, groups))}"
        if not groups:
            groups = identities.of_name(name, self._users.get(name, {}).get("groups", ())).groups
        if text not in self._acting:
            if len(self._acting) >= MOST_ACTING:
                oldest = next(iter(self._acting))
                del self._acting[oldest]
                self._callers.pop(oldest, None)
            self._acting[text] = User(name, tuple(groups))
        return text

    def seen_as(self, name: str, groups: Sequence[str]) -> str:
        """The text of a user that is asked about."""
        return self.acting_as(_ASKS, name, groups)

    def require(self, by: str, asked: Attributes) -> None:
        """Raises Forbidden."""
        caller = self._caller(by)
        if not self._is_open and caller.grants:
            self._judge(caller, asked)

    def user(self, by: str) -> User:
        return self._caller(by).user

    def may_everything(self, by: str) -> bool:
        caller = self._caller(by)
        return self._is_open or not caller.grants

    def rules_of_role(self, kind: str, name: str, namespace: str) -> Sequence[roles.Rule] | None:
        """``kind``: ``clusterroles`` or ``roles``. None: there is no such role."""
        return self._objects.rules().get(("" if kind == "clusterroles" else namespace, name))

    def cannot_list(self, by: str) -> bool:
        """Whether a mode allows the caller more than rules say."""
        return NODE in self._modes and self._caller(by).requester is not None

    def allows(self, by: str, asked: Attributes) -> tuple[bool, str]:
        """Whether a request would be allowed, and if not, why (``SubjectAccessReview``)."""
        caller = self._caller(by)
        if self.may_everything(by):
            return True, ""
        try:
            self._judge(caller, asked)
        except kemu_errors.Forbidden as error:
            return False, str(error).partition('": ')[2]
        return True, ""

    def allows_path(self, by: str, verb: str, path: str) -> bool:
        """Whether the caller may ask for a URL that is no resource, ``verb`` being the method in lower case."""
        caller = self._caller(by)
        if self._is_open or not caller.grants or roles.allows_path(caller.grants, verb, path):
            return True
        return self._objects.are_there and roles.allows_path(self._objects.grants(caller.user), verb, path)

    def grants_of(self, by: str) -> list[roles.Grant]:
        """All that the caller's roles allow."""
        caller = self._caller(by)
        if self._is_open:
            return [roles.Grant(roles.FULL, "")]
        if not caller.grants:
            # Masters are not asked, but they have what their groups have.
            return [*roles.usual(caller.user, ""), *self._objects.grants(caller.user)]
        return [*caller.grants, *self._objects.grants(caller.user)]

    def _caller(self, by: str) -> Caller:
        return self._callers.get(by) or self._enter(by)

    def _enter(self, by: str) -> Caller:
        actor, acts, name = by.partition(AS)
        stated = self._users.get(name, {}) if acts else {}
        user = self._acting.get(by)
        if user is None:
            user = identities.of_name(name, stated.get("groups", ())) if acts else identities.of_actor(actor)
        requester = Requester(user.node, is_kubelet=not acts) if user.node else None
        # There may be very many kubelets, and all may do the same.
        has_usual_groups = sorted(user.groups) == _GROUPS_OF_NODES
        is_one_of_many = requester is not None and has_usual_groups and user.name not in self._users
        if is_one_of_many and self._kubelet is not None:
            grants = self._kubelet.grants
        else:
            grants = self._grants(user, "" if acts else actor)
        caller = Caller(user, requester, grants)
        if is_one_of_many:
            if self._kubelet is None:
                self._kubelet = caller
            caller.allowed = self._kubelet.allowed
        self._callers[by] = caller
        if len(self._callers) > 2 * MOST_ACTING and acts:
            self._forget_acting()
        return caller

    def _grants(self, user: User, actor: str) -> roles.Grants:
        """Masters need none; every other user without one gets an empty one, so as to be asked."""
        if user.is_master:
            return roles.Grants()
        if user.name not in self._users:
            return roles.usual(user, actor)
        return roles.Grants((*roles.lasting(user, self._users, actor), roles.Grant((), "")))

    def _forget_acting(self) -> None:
        """A user that may act as others may name any number of them."""
        for text in [text for text in self._callers if AS in text][:MOST_ACTING]:
            del self._callers[text]

    def _judge(self, caller: Caller, asked: Attributes) -> bool:
        """Whether it is allowed for good, whatever the object is called. Raises Forbidden."""
        why = ""
        if caller.requester is not None and NODE in self._modes:
            reason = self._nodes.refusal(caller.requester.node, asked)
            if reason is None:
                return True
            why = reason
        if RBAC in self._modes:
            if caller.grants.allows(asked):
                return not asked.name or caller.grants.allows(asked._replace(name=""))
            if self._objects.are_there:
                found = self._objects.grants(caller.user)
                # Most rules hold for all names, so that the answer without one is remembered.
                if found.allows(asked._replace(name="")) or found.allows(asked):
                    return False
        raise _forbidden(caller.user, asked, why)


def _forbidden(user: User, asked: Attributes, why: str) -> kemu_errors.Forbidden:
    """``responsewriters.Forbidden``."""
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    row = resources.BY_PLURAL.get(asked.resource)
    qualified = row.qualified if row is not None else asked.resource
    if row is None and asked.group:
        qualified = f"{asked.resource}.{asked.group}"
    what = f'{qualified} "{asked.name}"' if asked.name else qualified
    asks = f'cannot {asked.verb} resource "{asked.combined}" in API group "{asked.group}" {where}'
    text = f'{what} is forbidden: User "{user.name}" {asks}'
    return kemu_errors.Forbidden(f"{text}: {why}" if why else text, kind=asked.resource, name=asked.name)
