"""The settings of the API servers. A scenario writes them under ``apiServers``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.apiserver import admission
from kemu.emulated.apiserver.authorization import authorizers
from kemu.emulated.apiserver.registry import bind_checks
from kemu.emulated.objects import resources
from kemu.emulated.objects.quotas import registry, scopes
from kemu.emulated.settings.declared import setting
from kemu.emulated.settings.shapes import DURATION, POSITIVE_DURATION, Choice, Key, ListOf, Record, Text, Whole
from kemu.runtime.env import SECOND_NS

_GROUPS = tuple(dict.fromkeys(resources.BY_PLURAL[plural].group for plural in registry.EVALUATORS))
_SCOPE = Record(
    {
        "scopeName": Key(Choice((scopes.PRIORITY_CLASS, *scopes.EXISTENCE_ONLY)), "The scope.", required=True),
        "operator": Key(Choice(scopes.OPERATORS), "How values select; Exists: any class.", required=True),
        "values": Key(ListOf(Text()), "Names of priority classes, for In and NotIn."),
    }
)
_LIMITED_RESOURCE = Record(
    {
        "apiGroup": Key(Choice(_GROUPS), "The API group of the resource; none by default, the core group."),
        "resource": Key(Choice(tuple(registry.EVALUATORS)), "A kind, by its plural.", required=True),
        "matchContains": Key(
            ListOf(Text()), "Amounts are limited whose names contain one of these: cpu, storageclass.storage.k8s.io/."
        ),
        "matchScopes": Key(ListOf(_SCOPE), "Objects in one of these scopes are limited."),
    }
)
"""As in the configuration of the admission plugin ResourceQuota."""


@dataclass(frozen=True, kw_only=True)
class ApiServers:
    """The API servers of a cluster, which are alike."""

    replicas: int = setting(Whole(1, 100), "More than one: each has its own watch cache.", 1)
    cache_lag_ns: int = setting(DURATION, "How far the watch caches are behind.", 0)
    event_ttl_ns: int = setting(POSITIVE_DURATION, "How long Event objects are kept; {default} by default.", "1h")
    most_events: int = setting(
        Whole(0, 100_000_000), "How many Event objects are kept, the newest; {default}, the default: any number.", 0
    )
    max_requests_in_flight: int | None = setting(
        Whole(1, 100_000),
        "With maxMutatingRequestsInFlight: how many requests one serves at a time, 400 and 200 by default.",
    )
    max_mutating_requests_in_flight: int | None = setting(Whole(0, 100_000), "See maxRequestsInFlight.")
    queue_length_limit: int | None = setting(
        Whole(0, 100_000), "How many requests of one client may wait; more get 429 and try again later."
    )
    bind_check: str = setting(
        Choice(bind_checks.KINDS),
        "What a binding is refused for beside Kubernetes' reasons: none; capacity: the pod does not fit; "
        "generation: the node has had other bindings than the binding says.",
        bind_checks.NONE,
    )
    authorization: list[str] = setting(
        ListOf(Choice(authorizers.MODES), 1),
        "Authorization modes; Node and RBAC by default, as with kubeadm.",
        [*authorizers.DEFAULT_MODES],
    )
    disable_admission_plugins: list[str] = setting(
        ListOf(Choice(admission.DEFAULT_ON)), "Plugins that are on by default, as for kube-apiserver.", []
    )
    enable_admission_plugins: list[str] = setting(
        ListOf(Choice(admission.DEFAULT_OFF)),
        "Plugins that are off by default, as for kube-apiserver; ServiceAccount is on in kemu up.",
        [],
    )
    limited_resources: list[dict[str, Any]] = setting(
        ListOf(_LIMITED_RESOURCE), "What nobody may use without a ResourceQuota that covers it.", []
    )

    def configuration(self) -> Mapping[str, Any]:
        """What the actor ``apiserver`` is told of it: see :data:`kemu.emulated.apiserver.server.DEFAULTS`."""
        found: dict[str, Any] = {
            "bind_check": self.bind_check,
            "cache_lag_s": self.cache_lag_ns / SECOND_NS,
            "event_ttl_s": self.event_ttl_ns / SECOND_NS,
            "most_events": self.most_events,
            "admission": [
                *(one for one in admission.DEFAULT_ON if one not in self.disable_admission_plugins),
                *self.enable_admission_plugins,
            ],
            "authorization": [*self.authorization],
            "limited_resources": [*self.limited_resources],
        }
        reading, mutating = self.max_requests_in_flight, self.max_mutating_requests_in_flight
        if reading is not None or mutating is not None:
            found["seats"] = (400 if reading is None else reading) + (200 if mutating is None else mutating)
        if self.queue_length_limit is not None:
            found["queue_limit"] = self.queue_length_limit
        return found
