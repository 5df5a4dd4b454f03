"""Asks the authorization modes about a request, and refuses it in Kubernetes' words (``endpoints/filters``).

A caller is known by a text: the name of an actor, or ``<actor> as <user>`` of somebody who acts as another user. What
it may do is found once for each verb, kind and namespace, so that nearly all requests cost a look into a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kemu import errors as kemu_errors
from kemu.apiserver.authorization import attributes, nodes, roles
from kemu.apiserver.authorization.attributes import Attributes
from kemu.apiserver.authorization.requesters import Requester
from kemu.apiserver.watch.cache import WatchCache
from kemu.objects import identities, resources
from kemu.objects.identities import User

NODE, RBAC, ALWAYS_ALLOW = "Node", "RBAC", "AlwaysAllow"
MODES = (NODE, RBAC, ALWAYS_ALLOW)
DEFAULT_MODES = (NODE, RBAC)
"""As kubeadm sets them; kube-apiserver itself has AlwaysAllow."""

AS = " as "

_BY_NAME = frozenset(("leases", "csinodes", "secrets", "configmaps", "serviceaccounts", "persistentvolumes",
                      "persistentvolumeclaims", "volumeattachments"))  # fmt: skip
_READS = ("get", "list", "watch", "delete_collection", "commit")


class Caller:
    """One user, as it calls."""

    __slots__ = ("allowed", "grants", "requester", "user")

    def __init__(self, user: User, requester: Requester | None, grants: Sequence[roles.Grant]) -> None:
        self.user = user
        self.requester = requester
        """Of a kubelet."""
        self.grants: Sequence[roles.Grant] = grants
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
        self._is_open = ALWAYS_ALLOW in modes
        self._kubelet: Caller | None = None
        """The first one."""

    def check(self, by: str, verb: str, request: Any) -> Requester | None:
        """``verb`` as the service has it. Returns the node whose kubelet asks. Raises
        :class:`kemu.errors.Forbidden`."""
        caller = self._callers.get(by)
        if caller is None:
            caller = self._enter(by)
        if self._is_open or not caller.grants:
            return caller.requester
        if verb in _READS:
            key = None
        elif verb == "bind" or verb == "evict":
            key = verb, "", "", request.namespace
        else:
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

    def acting_as(self, by: str, name: str) -> str:
        """The caller ``by`` wants to act as another user (``Impersonate-User``). Raises Forbidden."""
        if not self._caller(by).user.is_master and not self._is_open:
            asked = Attributes("impersonate", "", "users", "", "", name, "")
            raise _forbidden(self._caller(by).user, asked, "")
        return f"{by}{AS}{name}"

    def _caller(self, by: str) -> Caller:
        return self._callers.get(by) or self._enter(by)

    def _enter(self, by: str) -> Caller:
        actor, acts, name = by.partition(AS)
        stated = self._users.get(name, {}) if acts else {}
        user = identities.of_name(name, stated.get("groups", ())) if acts else identities.of_actor(actor)
        requester = Requester(user.node, is_kubelet=not acts) if user.node else None
        # There may be very many kubelets, and all may do the same.
        is_one_of_many = requester is not None and user.name not in self._users
        if is_one_of_many and self._kubelet is not None:
            grants = self._kubelet.grants
        else:
            # Masters need none; whoever else has none gets an empty one, so as to be asked.
            found = [*roles.lasting(user, self._users, "" if acts else actor), roles.Grant((), "")]
            grants = [] if user.is_master else found
        caller = Caller(user, requester, grants)
        if is_one_of_many:
            if self._kubelet is None:
                self._kubelet = caller
            caller.allowed = self._kubelet.allowed
        self._callers[by] = caller
        return caller

    def _judge(self, caller: Caller, asked: Attributes) -> bool:
        """Whether it is allowed for good, whatever the object is called. Raises Forbidden."""
        why = ""
        if caller.requester is not None and NODE in self._modes:
            reason = self._nodes.refusal(caller.requester.node, asked)
            if reason is None:
                return True
            why = reason
        if RBAC in self._modes:
            if roles.allows(caller.grants, asked):
                return not asked.name or roles.allows(caller.grants, asked._replace(name=""))
            if self._objects.are_there and roles.allows(self._objects.grants(caller.user), asked):
                return False
        raise _forbidden(caller.user, asked, why)


def _forbidden(user: User, asked: Attributes, why: str) -> kemu_errors.Forbidden:
    """``responsewriters.Forbidden``."""
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    row = resources.BY_PLURAL.get(asked.resource)
    qualified = row.qualified if row is not None else asked.resource
    what = f'{qualified} "{asked.name}"' if asked.name else qualified
    asks = f'cannot {asked.verb} resource "{asked.combined}" in API group "{asked.group}" {where}'
    text = f'{what} is forbidden: User "{user.name}" {asks}'
    return kemu_errors.Forbidden(f"{text}: {why}" if why else text, kind=asked.resource, name=asked.name)
