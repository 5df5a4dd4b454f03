"""Mode RBAC: what the roles of a user allow (``plugin/pkg/auth/authorizer/rbac``).

There are the roles that every cluster has, users of the scenario with roles, and Roles and bindings that are objects.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources as files
from typing import Any, NamedTuple

from kemu.emulated.apiserver.authorization.attributes import Attributes
from kemu.emulated.apiserver.storage import Entry
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.emulated.objects import identities
from kemu.emulated.objects.identities import User
from kemu.messages.k8s import rbac_v1_pb2

KINDS = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
EVERYTHING = "cluster-admin"
_OF_SCHEDULERS = ("system:kube-scheduler", "system:volume-scheduler")
_OF_CONTROLLERS = "system:controller:"


class Rule(NamedTuple):
    """``PolicyRule``."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    """With their subresources: ``pods/status``."""
    names: frozenset[str]
    """Empty: all."""
    paths: tuple[str, ...] = ()
    """URLs that are no resources; one that ends with ``*`` stands for all that begin so."""

    def allows_path(self, verb: str, path: str) -> bool:
        """``NonResourceRuleAllows``."""
        if verb not in self.verbs and "*" not in self.verbs:
            return False
        return any(path == one or (one.endswith("*") and path.startswith(one[:-1])) for one in self.paths)

    def allows(self, asked: Attributes) -> bool:
        """``RuleAllows``."""
        if asked.verb not in self.verbs and "*" not in self.verbs:
            return False
        if asked.group not in self.groups and "*" not in self.groups:
            return False
        combined = asked.combined
        if self.resources.isdisjoint((combined, "*", f"*/{asked.subresource}" if asked.subresource else "*")):
            return False
        return not self.names or asked.name in self.names


def rule(verbs: str, groups: str, plurals: str) -> Rule:
    """Words apart by blanks; ``core`` is the group without a name."""
    named = frozenset("" if group == "core" else group for group in groups.split())
    return Rule(frozenset(verbs.split()), named, frozenset(plurals.split()), frozenset())


_HEALTH = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")
_EVERYWHERE: frozenset[str] = frozenset()
_PATHS = {
    "cluster-admin": (("*",), ("*",)),
    "system:discovery": (("get",), (*_DISCOVERY, *_HEALTH)),
    "system:public-info-viewer": (("get",), _HEALTH),
    "system:monitoring": (
        ("get",),
        (
            "/flagz", "/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz",
            "/readyz/*", "/statusz",
        ),
    ),
}  # fmt: skip
"""What the roles of a new cluster allow beside resources (``bootstrappolicy.ClusterRoles``)."""


def of_paths(verbs: Iterable[str], paths: Iterable[str]) -> Rule:
    return Rule(frozenset(verbs), _EVERYWHERE, _EVERYWHERE, _EVERYWHERE, tuple(paths))


FULL = (rule("*", "*", "*"), of_paths(("*",), ("*",)))
"""What allows everything."""


_OF_GROUPS = (
    rule("get list watch", "scheduling.k8s.io", "podgroups"),
    rule("patch update", "scheduling.k8s.io", "podgroups/status"),
)
"""What schedulers may do besides with the feature gate GenericWorkload."""


class Grant(NamedTuple):
    """What a binding gives."""

    rules: tuple[Rule, ...]
    namespace: str
    """Empty: everywhere."""


class Grants(tuple[Grant, ...]):
    """All that one user has for good. Equal users of many runs share one, which remembers what it has judged."""

    MOST_REMEMBERED = 10_000

    def __init__(self, _: Iterable[Grant] = ()) -> None:
        self._judged: dict[Attributes, bool] = {}

    def allows(self, asked: Attributes) -> bool:
        found = self._judged.get(asked)
        if found is None:
            if len(self._judged) >= self.MOST_REMEMBERED:
                self._judged.clear()
            found = self._judged[asked] = allows(self, asked)
        return found


class _Known(NamedTuple):
    """The roles and bindings of a new cluster."""

    cluster_roles: Mapping[str, tuple[Rule, ...]]
    cluster_bindings: Sequence[tuple[str, Sequence[str]]]
    roles: Mapping[str, Mapping[str, tuple[Rule, ...]]]
    """By namespace."""
    bindings: Mapping[str, Sequence[tuple[str, Sequence[str]]]]


@functools.cache
def known() -> _Known:
    data = json.loads(files.files("kemu.emulated.apiserver.authorization").joinpath("roles.json").read_text())
    return _Known(
        {
            name: (*_rules(rules), *(of_paths(*_PATHS[name]) for _ in range(name in _PATHS)))
            for name, rules in data["clusterRoles"].items()
        },
        [(one["role"], one["subjects"]) for one in data["clusterBindings"]],
        {
            namespace: {name: _rules(rules) for name, rules in found.items()}
            for namespace, found in data["roles"].items()
        },
        {namespace: [(one["role"], one["subjects"]) for one in found] for namespace, found in data["bindings"].items()},
    )


def _rules(data: Iterable[Mapping[str, Any]]) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            frozenset(one["verbs"]), frozenset(one["groups"]), frozenset(one["resources"]),
            frozenset(one.get("names", ())),
        )
        for one in data
    )  # fmt: skip


def allows(grants: Iterable[Grant], asked: Attributes) -> bool:
    return any(
        grant.namespace in ("", asked.namespace) and any(rule.allows(asked) for rule in grant.rules) for grant in grants
    )


def allows_path(grants: Iterable[Grant], verb: str, path: str) -> bool:
    """A role that a namespace gives says nothing of URLs."""
    return any(not grant.namespace and any(rule.allows_path(verb, path) for rule in grant.rules) for grant in grants)


def lasting(user: User, users: Mapping[str, Mapping[str, Any]], actor: str = "") -> list[Grant]:
    """What a user may do whatever objects there are. ``users``: those of the scenario, with their roles. ``actor``: who
    it is, unless a caller acts as that user."""
    found = known()
    subjects = frozenset((user.name, *(f"group {group}" for group in user.groups)))
    grants = [
        Grant(found.cluster_roles[role], "") for role, bound in found.cluster_bindings if not subjects.isdisjoint(bound)
    ]
    for namespace, bindings in found.bindings.items():
        grants += [
            Grant(found.roles[namespace][role], namespace) for role, bound in bindings if not subjects.isdisjoint(bound)
        ]
    for one in users.get(user.name, {}).get("roles", ()):
        grants.append(Grant(found.cluster_roles[one["role"]], one["namespace"]))
    grants += [Grant(found.cluster_roles[role], "") for role in _installed(user, actor)]
    if actor.startswith("scheduler/"):
        grants.append(Grant(_OF_GROUPS, ""))
    return [*grants, *(grant for names, grant in _own() if not subjects.isdisjoint(names))]


@functools.lru_cache(maxsize=1024)
def usual(user: User, actor: str) -> Grants:
    """:func:`lasting` of a user of whom the scenario says nothing; and an empty one, so that everyone has some."""
    return Grants((*lasting(user, {}, actor), Grant((), "")))


def _installed(user: User, actor: str) -> Sequence[str]:
    """The roles of what an administrator adds to a cluster.

    Schedulers beside default-scheduler have those of the Kubernetes documentation; extenders, and controllers that
    Kubernetes does not have (an autoscaler, say), all of them.
    """
    kind = actor.partition("/")[0]
    if kind == "scheduler":
        return _OF_SCHEDULERS
    if kind == "extender":
        return (EVERYTHING,)
    account = user.name.rpartition(":")[2]
    return (EVERYTHING,) if kind == "controller" and _OF_CONTROLLERS + account not in known().cluster_roles else ()


@functools.cache
def _own() -> tuple[tuple[frozenset[str], Grant], ...]:
    """What kemu's components do beyond those of Kubernetes."""
    accounts = f"{identities.SERVICE_ACCOUNT_PREFIX}kube-system:"
    of_the_system = frozenset((f"group {identities.SERVICE_ACCOUNTS}:kube-system",))
    workloads = ("replicaset", "statefulset", "daemon-set", "deployment")
    of_workloads = frozenset(f"{accounts}{name}-controller" for name in workloads)
    statuses = "replicasets/status statefulsets/status daemonsets/status deployments/status"
    return (
        # Each controller is a process, which elects its own leader.
        (of_the_system, Grant((rule("get list watch create update", "coordination.k8s.io", "leases"),), "kube-system")),
        # In kube-controller-manager, shared informers read for all of them.
        (of_the_system, Grant((rule("get list watch", "*", "*"),), "")),
        # They delete pods of owners that are gone, which in Kubernetes is the garbage collector's work, and patch the
        # status of their owners, which in Kubernetes they replace.
        (of_workloads, Grant((rule("get patch delete", "core", "pods"), rule("patch", "apps", statuses)), "")),
        # With the feature gate DRAWorkloadResourceClaims.
        (
            frozenset((f"{accounts}resource-claim-controller",)),
            Grant((rule("update patch", "scheduling.k8s.io", "podgroups/status"),), ""),
        ),
        # With the feature gate WorkloadWithJob.
        (
            frozenset((f"{accounts}job-controller",)),
            Grant((rule("create", "scheduling.k8s.io", "workloads podgroups"),), ""),
        ),
    )


class Objects:
    """Roles and bindings that are objects, as the watch cache has them; parsed when they have changed."""

    MOST_USERS = 1000

    def __init__(self, cache: WatchCache) -> None:
        self._collections = [cache.collections[kind] for kind in KINDS]
        self._seen: list[Entry] = []
        """What the rest was made of."""
        self._rules = _by_role()
        self._bindings: list[rbac_v1_pb2.RoleBinding | rbac_v1_pb2.ClusterRoleBinding] = []
        self._grants: dict[User, Grants] = {}

    @property
    def are_there(self) -> bool:
        return any(one.entries for one in self._collections)

    def rules(self) -> Mapping[tuple[str, str], tuple[Rule, ...]]:
        """Rules of all roles, by namespace (empty for cluster roles) and name."""
        self._look()
        return self._rules

    def grants(self, user: User) -> Grants:
        """What a user's bindings give."""
        self._look()
        found = self._grants.get(user)
        if found is None:
            if len(self._grants) >= self.MOST_USERS:
                self._grants.clear()
            found = self._grants[user] = Grants(self._given(user))
        return found

    def _look(self) -> None:
        seen = [entry for one in self._collections for entry in one.entries.values()]
        if seen == self._seen:
            return
        parsed: list[list[Any]] = [
            [one.resource.message.FromString(entry.wire) for _, entry in sorted(one.entries.items())]
            for one in self._collections
        ]
        cluster_roles, cluster_bindings, roles, bindings = parsed
        self._rules = _by_role(*cluster_roles, *roles)
        self._bindings = [*cluster_bindings, *bindings]
        self._grants.clear()
        self._seen = seen

    def _given(self, user: User) -> Iterator[Grant]:
        for binding in self._bindings:
            namespace = binding.metadata.namespace
            if any(_is_subject(one, user, namespace) for one in binding.subjects):
                where = "" if binding.roleRef.kind == "ClusterRole" else namespace
                yield Grant(self._rules.get((where, binding.roleRef.name), ()), namespace)


def _by_role(*objects: rbac_v1_pb2.Role) -> dict[tuple[str, str], tuple[Rule, ...]]:
    """By namespace, empty for cluster roles, and name."""
    found = known()
    rules = {("", name): one for name, one in found.cluster_roles.items()}
    for namespace, named in found.roles.items():
        rules |= {(namespace, name): one for name, one in named.items()}
    return rules | {(one.metadata.namespace, one.metadata.name): _rules_of(one) for one in objects}


def _rules_of(role: rbac_v1_pb2.Role) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            frozenset(one.verbs), frozenset(one.apiGroups), frozenset(one.resources), frozenset(one.resourceNames),
            tuple(one.nonResourceURLs),
        )
        for one in role.rules
    )  # fmt: skip


def _is_subject(subject: rbac_v1_pb2.Subject, user: User, namespace: str) -> bool:
    """``appliesToUser``."""
    if subject.kind == "User":
        return bool(subject.name == user.name)
    if subject.kind == "Group":
        return subject.name in user.groups
    return user.name == f"{identities.SERVICE_ACCOUNT_PREFIX}{subject.namespace or namespace}:{subject.name}"
