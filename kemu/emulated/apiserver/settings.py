"""The settings of the API servers. A scenario writes them under ``apiServers``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.apiserver import admission
from kemu.emulated.apiserver.admission.external import hooks
from kemu.emulated.apiserver.authorization import authorizers
from kemu.emulated.apiserver.registry import bind_checks
from kemu.emulated.objects import resources
from kemu.emulated.objects.kinds import service_ranges
from kemu.emulated.objects.quotas import registry, scopes
from kemu.emulated.settings.declared import Complaint, setting
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import (
    DURATION,
    INVALID,
    POSITIVE_DURATION,
    Choice,
    Free,
    Key,
    ListOf,
    MapOf,
    Record,
    Switch,
    Text,
    Whole,
)
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


_TEXTS = ListOf(Text(".*"))
_RULE = Record(
    {
        "operations": Key(ListOf(Choice(("CREATE", "UPDATE", "DELETE", "*"))), "What is done.", required=True),
        "apiGroups": Key(_TEXTS, 'API groups; "" for the core group, * for all.', required=True),
        "apiVersions": Key(_TEXTS, "API versions; * for all.", required=True),
        "resources": Key(_TEXTS, "Plurals, perhaps with subresources: pods, pods/status, */*.", required=True),
        "scope": Key(Choice(("*", "Cluster", "Namespaced")), "Which of them."),
    }
)
_HOOK = Record(
    {
        "name": Key(Text(), "Its name, with three parts at least: no-latest.example.com.", required=True),
        "hook": Key(Text(), "module:function, called with each request that concerns it.", required=True),
        "mutates": Key(Switch(), "It may change the object; otherwise it only refuses."),
        "rules": Key(
            ListOf(_RULE),
            "Which requests concern it; without rules, those of the webhook of that name that it stands for.",
        ),
        "namespaceSelector": Key(Free(mapping=True), "A label selector: of the namespaces."),
        "objectSelector": Key(Free(mapping=True), "A label selector: of the objects, before or after."),
        "matchPolicy": Key(Choice(("Equivalent", "Exact")), "Whether rules match other versions, too."),
        "matchConditions": Key(ListOf(Free(mapping=True)), "Conditions in CEL."),
        "reinvocationPolicy": Key(
            Choice(("Never", "IfNeeded")), "With mutates: IfNeeded asks it again when others have changed the object."
        ),
    }
)
_CONVERSION_HOOK = Record(
    {
        "name": Key(Text(), "The name of the CustomResourceDefinition: widgets.example.com.", required=True),
        "hook": Key(
            Text(), "module:function, called with an object and an API version; returns it in that one.", required=True
        ),
    }
)
CALL, REFUSE, STORE = "call", "refuse", "store"


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
        ListOf(Choice((*admission.DEFAULT_ON, *admission.DEFAULT_OFF))),
        "Plugins that are not to run, as for kube-apiserver.",
        [],
    )
    enable_admission_plugins: list[str] = setting(
        ListOf(Choice(admission.DEFAULT_OFF)),
        "Plugins that are off by default, as for kube-apiserver; ServiceAccount is on in kemu up.",
        [],
    )
    limited_resources: list[dict[str, Any]] = setting(
        ListOf(_LIMITED_RESOURCE), "What nobody may use without a ResourceQuota that covers it.", []
    )

    admission_hooks: list[dict[str, Any]] = setting(
        ListOf(_HOOK), "Functions in Python that may refuse or change what is written, as webhooks do.", []
    )
    conversion_hooks: list[dict[str, Any]] = setting(
        ListOf(_CONVERSION_HOOK), "Functions in Python that stand for the conversion webhooks of definitions.", []
    )
    webhooks: str = setting(
        Choice((REFUSE, CALL)),
        "Webhooks for which no hook stands: refused when the scenario is loaded, or called over the network, as by "
        "kemu up.",
        REFUSE,
    )
    unsimulated_fields: str = setting(
        Choice((REFUSE, STORE)),
        "Fields of objects that kemu does not simulate: refused, or stored, as by the API server of kemu "
        "envtest-assets, where nothing acts on them.",
        REFUSE,
    )
    removed_betas: bool = setting(
        Switch(),
        "Serve policy/v1beta1 and batch/v1beta1, and take CustomResourceDefinitions of v1beta1 from manifests.",
        False,
    )
    service_ranges: list[str] = setting(
        ListOf(Text(what="a range of addresses")),
        "Ranges of Services' addresses, one or one of each family, as --service-cluster-ip-range of kube-apiserver: "
        "ServiceCIDRs count, and each address is an IPAddress. 10.96.0.0/16 where the controller service-cidr runs.",
        [],
    )
    services: dict[str, int] = setting(
        MapOf(Whole(1, 65535)),
        "Ports of this machine where processes listen for Services of webhooks and APIServices, by NAMESPACE/NAME.",
        {},
    )

    def complaints(self) -> Iterable[Complaint]:
        for index, hook in enumerate(self.admission_hooks):
            if hook is INVALID:
                continue
            where: Path = ("admissionHooks", index)
            if any(one is not INVALID and one["name"] == hook["name"] for one in self.admission_hooks[:index]):
                yield Complaint((*where, "name"), "another hook has this name")
            for text in hooks.problems(hook):
                yield Complaint(where, text)
        names = [hook["name"] for hook in self.conversion_hooks if hook is not INVALID]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Complaint(("conversionHooks", index, "name"), "another hook has this name")
        families: list[str] = []
        for index, text in enumerate(self.service_ranges):
            if text is INVALID:
                continue
            if found := service_ranges.mistake(text):
                yield Complaint(("serviceRanges", index), found)
            elif service_ranges.family(text) in families:
                yield Complaint(("serviceRanges", index), "another range has addresses of this family")
            families.append(service_ranges.family(text))
        for name in self.services:
            if name.count("/") != 1:
                yield Complaint(("services", name), "must be NAMESPACE/NAME", key=True)

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
            "hooks": [*self.admission_hooks],
            "conversion_hooks": [*self.conversion_hooks],
            "services": {**self.services},
            "stores_unsimulated": self.unsimulated_fields == STORE,
        }
        reading, mutating = self.max_requests_in_flight, self.max_mutating_requests_in_flight
        if reading is not None or mutating is not None:
            found["seats"] = (400 if reading is None else reading) + (200 if mutating is None else mutating)
        if self.queue_length_limit is not None:
            found["queue_limit"] = self.queue_length_limit
        return found
