"""What the gateway serves: groups in the order of kube-apiserver, their kinds, verbs and subresources.

Kinds come from :mod:`kemu.emulated.objects.resources`; here stands what that table does not tell. A test compares all
of it with the documents of a real kube-apiserver.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kemu.emulated.objects import events, resources
from kemu.emulated.objects.kinds import autoscalers
from kemu.emulated.objects.kinds.removed_betas import BUDGETS, CRON_JOBS
from kemu.emulated.objects.resources import Resource

ALL = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CREATE = ("create",)
CHANGE = ("get", "patch", "update")
STREAM = ("create", "get")
PROXY = ("create", "delete", "get", "patch", "update")

GROUPS = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "metrics.k8s.io",
)
"""From the preferred one on; those that nothing is served of are left out."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is sent and received; group and version are empty where they are those of the resource."""

    kind: str
    group: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Subresource:
    name: str
    kind: Kind
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One resource of a group and version."""

    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    is_stored: bool = True
    stored_as: str = ""
    """Version in which objects are stored; empty: the preferred one."""
    is_custom: bool = False


@dataclass(frozen=True, slots=True)
class Version:
    group: str
    version: str
    entries: tuple[Entry, ...]
    """By plural."""
    is_stale: bool = False
    """Another server serves it, which does not answer now."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


SCALE = Subresource("scale", Kind("Scale", "autoscaling", "v1"), CHANGE)

_SUBRESOURCES: dict[str, tuple[Subresource, ...]] = {
    "pods": (
        Subresource("attach", Kind("PodAttachOptions"), STREAM),
        Subresource("binding", Kind("Binding"), CREATE),
        Subresource("ephemeralcontainers", Kind("Pod"), CHANGE),
        Subresource("eviction", Kind("Eviction", "policy", "v1"), CREATE),
        Subresource("exec", Kind("PodExecOptions"), STREAM),
        Subresource("log", Kind("Pod"), ("get",)),
        Subresource("portforward", Kind("PodPortForwardOptions"), STREAM),
        Subresource("proxy", Kind("PodProxyOptions"), PROXY),
        Subresource("resize", Kind("Pod"), CHANGE),
    ),
    "certificatesigningrequests": (Subresource("approval", Kind("CertificateSigningRequest"), CHANGE),),
    "namespaces": (Subresource("finalize", Kind("Namespace"), ("update",)),),
    "nodes": (Subresource("proxy", Kind("NodeProxyOptions"), PROXY),),
    "services": (Subresource("proxy", Kind("ServiceProxyOptions"), PROXY),),
    "serviceaccounts": (Subresource("token", Kind("TokenRequest", "authentication.k8s.io", "v1"), CREATE),),
    **dict.fromkeys(("deployments", "replicasets", "statefulsets", "replicationcontrollers"), (SCALE,)),
}
"""Besides ``status``."""

_IN_ALL = frozenset(
    (
        "pods",
        "replicationcontrollers",
        "services",
        "daemonsets",
        "deployments",
        "replicasets",
        "statefulsets",
        "horizontalpodautoscalers",
        "cronjobs",
        "jobs",
    )
)
"""What ``kubectl get all`` shows."""

_VERBS = {"namespaces": tuple(verb for verb in ALL if verb != "deletecollection")}
_SINGULAR = {"endpoints": "endpoints"}


def _posted(plural: str, kind: str, namespaced: bool = False) -> Entry:
    """What is only posted, to be answered at once."""
    return Entry(plural, kind.lower(), kind, namespaced, CREATE, is_stored=False)


_POSTED: dict[str, tuple[Entry, ...]] = {
    "v1": (
        _posted("bindings", "Binding", True),
        Entry(
            "componentstatuses",
            "componentstatus",
            "ComponentStatus",
            False,
            ("get", "list"),
            ("cs",),
            is_stored=False,
        ),
    ),
    "authentication.k8s.io/v1": (
        _posted("selfsubjectreviews", "SelfSubjectReview"),
        _posted("tokenreviews", "TokenReview"),
    ),
    "authorization.k8s.io/v1": (
        _posted("localsubjectaccessreviews", "LocalSubjectAccessReview", True),
        _posted("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        _posted("selfsubjectrulesreviews", "SelfSubjectRulesReview"),
        _posted("subjectaccessreviews", "SubjectAccessReview"),
    ),
}


_METRICS = tuple(
    Entry(plural, "", kind, namespaced, ("get", "list"), is_stored=False)
    for plural, kind, namespaced in (("nodes", "NodeMetrics", False), ("pods", "PodMetrics", True))
)


def _categories(row: Resource) -> tuple[str, ...]:
    if row.group in ("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"):
        return ("api-extensions",)
    return ("all",) if row.plural in _IN_ALL else ()


_STORED_AS = {"customresourcedefinitions": "v1beta1"}
"""As Kubernetes stores them; kemu stores all kinds in the version that it serves."""


def _entry(row: Resource) -> Entry:
    kept = _SUBRESOURCES.get(row.plural, ())
    if row.has_status:
        kept = (*kept, Subresource("status", Kind(row.kind), CHANGE))
    return Entry(
        row.plural,
        _SINGULAR.get(row.plural, row.kind.lower()),
        row.kind,
        row.namespaced,
        _VERBS.get(row.plural, ALL),
        row.short_names,
        _categories(row),
        tuple(sorted(kept, key=lambda one: one.name)),
        stored_as=_STORED_AS.get(row.plural, ""),
    )


def with_custom(custom: tuple[Version, ...], removed_betas: bool = False) -> tuple[Version, ...]:
    """Those of kemu's own kinds and those of custom ones, in the order of groups."""
    own = versions(removed_betas)
    if not custom:
        return own
    last = tuple(one for one in own if one.group in _AFTER_CUSTOM)
    return (*(one for one in own if one.group not in _AFTER_CUSTOM), *custom, *last)


_AFTER_CUSTOM = ("metrics.k8s.io",)
"""Groups that are less preferred than custom ones."""


_OLD = ("autoscaling/v1",)
"""Versions that come after the others of their group."""


_ALPHA = "alpha"
"""Versions that Kubernetes does not serve by default are there for scenarios alone."""


@lru_cache(2)
def versions(removed_betas: bool = False) -> tuple[Version, ...]:
    """Groups and versions with what they hold, the preferred ones first. ``removed_betas``: also those."""
    found: dict[str, list[Entry]] = {api_version: list(entries) for api_version, entries in _POSTED.items()}
    found["metrics.k8s.io/v1beta1"] = list(_METRICS)
    removed = (BUDGETS, CRON_JOBS) if removed_betas else ()
    for row in (*resources.RESOURCES, events.ROW, autoscalers.ROW, *removed):
        if _ALPHA not in row.api_version:
            found.setdefault(row.api_version, []).append(_entry(row))
    made = []
    for api_version, entries in found.items():
        group, _, version = api_version.rpartition("/")
        made.append(Version(group, version, tuple(sorted(entries, key=lambda entry: entry.plural))))
    return tuple(sorted(made, key=lambda one: (GROUPS.index(one.group), one.api_version in _OLD, one.version)))
