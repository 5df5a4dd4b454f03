"""Who makes a request: the users and groups of Kubernetes behind the actors of a run.

The name of an actor is authentic: in memory the channel states it, between processes a token proves it
(:mod:`kemu.runtime.host.tokens`). What its user is called here is what kubeadm writes into certificates and what
kube-controller-manager gives its controllers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

MASTERS, AUTHENTICATED = "system:masters", "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
NODES, NODE_PREFIX = "system:nodes", "system:node:"
SERVICE_ACCOUNTS, SERVICE_ACCOUNT_PREFIX = "system:serviceaccounts", "system:serviceaccount:"
KUBE_SCHEDULER = "system:kube-scheduler"

CONTROLLERS = {
    "node-lifecycle": "node-controller",
    "taint-eviction": "node-controller",
    "node-affinity-eviction": "node-controller",
    "pod-gc": "pod-garbage-collector",
    "replicaset": "replicaset-controller",
    "statefulset": "statefulset-controller",
    "daemonset": "daemon-set-controller",
    "deployment": "deployment-controller",
    "job": "job-controller",
    "cronjob": "cronjob-controller",
    "ttl-after-finished": "ttl-after-finished-controller",
    "disruption": "disruption-controller",
    "resourcequota": "resourcequota-controller",
    "garbage-collector": "generic-garbage-collector",
    "namespace": "namespace-controller",
    "clusterrole-aggregation": "clusterrole-aggregation-controller",
    "persistentvolume-binder": "persistent-volume-binder",
    "attach-detach": "attachdetach-controller",
    "ephemeral-volume": "ephemeral-volume-controller",
    "resourceclaim": "resource-claim-controller",
    "device-taint-eviction": "device-taint-eviction-controller",
    "service-lb": "service-controller",
    "service-cidr": "service-cidrs-controller",
    "endpoints": "endpoint-controller",
    "endpointslice": "endpointslice-controller",
    "endpointslice-mirroring": "endpointslicemirroring-controller",
}
"""The service accounts of controllers whose names differ from those of their actors."""


Extra = tuple[tuple[str, tuple[str, ...]], ...]
"""Keys and their values, in order: hashable, as users are."""


class User(NamedTuple):
    name: str
    groups: tuple[str, ...]
    uid: str = ""
    extra: Extra = ()
    """What a token or a certificate tells beside, for admission."""

    @property
    def node(self) -> str:
        """The node whose kubelet it is; empty: it is none (``NodeIdentity``)."""
        is_node = self.name.startswith(NODE_PREFIX) and NODES in self.groups
        return self.name.removeprefix(NODE_PREFIX) if is_node else ""

    def info(self) -> dict[str, Any]:
        """``UserInfo`` of reviews, as JSON."""
        found: dict[str, Any] = {"username": self.name}
        if self.uid:
            found["uid"] = self.uid
        if self.groups:
            found["groups"] = list(self.groups)
        if self.extra:
            found["extra"] = {key: list(values) for key, values in self.extra}
        return found

    @property
    def is_master(self) -> bool:
        """Whether it may do everything."""
        return MASTERS in self.groups


ADMINISTRATOR = User("kubernetes-admin", (MASTERS, AUTHENTICATED))
"""The user of a scenario, and every other user that is no component of the cluster."""


API_SERVER = User("system:apiserver", (MASTERS, AUTHENTICATED))
"""As which an API server calls itself."""

ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
"""A caller that shows neither a token nor a certificate."""


def service_account(name: str, namespace: str = "kube-system") -> User:
    return of_name(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")


_OF_NODES = NODES, AUTHENTICATED
"""Groups of every kubelet, once for all."""


def of_name(name: str, groups: Sequence[str] = ()) -> User:
    """A user by name; those of the system have their groups."""
    if not groups and name.startswith(NODE_PREFIX):
        return User(name, _OF_NODES)
    found = list(groups)
    if name.startswith(NODE_PREFIX):
        found.append(NODES)
    elif name.startswith(SERVICE_ACCOUNT_PREFIX):
        namespace = name.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")[0]
        found += [SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"]
    return User(name, tuple(dict.fromkeys([*found, AUTHENTICATED])))


def of_actor(actor: str) -> User:
    """The user of an actor."""
    kind, _, rest = actor.partition("/")
    name = rest.partition("/")[0]
    if kind == "kubelet":
        return of_name(NODE_PREFIX + rest)
    if kind == "scheduler":
        return of_name(KUBE_SCHEDULER) if name == "default-scheduler" else service_account(name)
    if kind == "controller":
        return service_account(CONTROLLERS.get(name, name))
    if kind == "extender":
        return service_account(f"extender-{name}")
    if kind == "apiserver":
        return API_SERVER
    return ADMINISTRATOR
