"""The flow schemas and priority levels that every cluster has (``apiserver/pkg/apis/flowcontrol/bootstrap``), as
kube-apiserver v1.36.3 stores them. ``exempt`` and ``catch-all`` are mandatory; administrators may change the others."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.messages.k8s import flowcontrol_v1_pb2 as flow

EXEMPT, CATCH_ALL = "exempt", "catch-all"
AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"
"""The annotation of objects whose spec the API server keeps."""


def _limited(name: str, shares: int, lendable: int, queues: int = 0, hand: int = 6) -> flow.PriorityLevelConfiguration:
    """``queues`` 0: what finds no seat is rejected."""
    found = flow.PriorityLevelConfiguration()
    found.metadata.name, found.spec.type = name, "Limited"
    limited = found.spec.limited
    limited.nominalConcurrencyShares, limited.lendablePercent = shares, lendable
    limited.limitResponse.type = "Queue" if queues else "Reject"
    if queues:
        queuing = limited.limitResponse.queuing
        queuing.queues, queuing.handSize, queuing.queueLengthLimit = queues, hand, 50
    return _kept(found)


def _exempt() -> flow.PriorityLevelConfiguration:
    found = flow.PriorityLevelConfiguration()
    found.metadata.name, found.spec.type = EXEMPT, "Exempt"
    found.spec.exempt.nominalConcurrencyShares = found.spec.exempt.lendablePercent = 0
    return _kept(found)


def _kept(found: flow.PriorityLevelConfiguration) -> flow.PriorityLevelConfiguration:
    found.metadata.annotations[AUTOUPDATE] = "true"
    return found


LEVELS = (
    _exempt(),
    _limited(CATCH_ALL, 5, 0),
    _limited("system", 30, 33, 64),
    _limited("node-high", 40, 25, 64),
    _limited("leader-election", 10, 0, 16, 4),
    _limited("workload-high", 40, 50, 128),
    _limited("workload-low", 100, 90, 128),
    _limited("global-default", 20, 50, 128),
)
"""In the order in which the API server makes them, the mandatory ones first."""


def _user(name: str) -> flow.Subject:
    return flow.Subject(kind="User", user=flow.UserSubject(name=name))


def _group(name: str) -> flow.Subject:
    return flow.Subject(kind="Group", group=flow.GroupSubject(name=name))


_SYSTEM_ACCOUNTS = flow.Subject(
    kind="ServiceAccount", serviceAccount=flow.ServiceAccountSubject(namespace="kube-system", name="*")
)
_MANAGER, _SCHEDULER = _user("system:kube-controller-manager"), _user("system:kube-scheduler")
_EVERYBODY = _group("system:unauthenticated"), _group("system:authenticated")


def _resources(
    groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str] = ("*",), cluster: bool = False
) -> flow.ResourcePolicyRule:
    found = flow.ResourcePolicyRule(verbs=verbs, apiGroups=groups, resources=resources, namespaces=["*"])
    if cluster:
        found.clusterScope = True
    return found


_LEASES = ("coordination.k8s.io",), ("leases",)
_ALL = (_resources("*", "*", cluster=True),)
_ALL_URLS = flow.NonResourcePolicyRule(verbs=["*"], nonResourceURLs=["*"])


def _schema(
    name: str,
    level: str,
    precedence: int,
    by: str,
    subjects: Sequence[flow.Subject],
    rules: Sequence[flow.ResourcePolicyRule] = _ALL,
    urls: flow.NonResourcePolicyRule | None = _ALL_URLS,
) -> flow.FlowSchema:
    found = flow.FlowSchema()
    found.metadata.name = name
    found.metadata.annotations[AUTOUPDATE] = "true"
    spec = found.spec
    spec.priorityLevelConfiguration.name, spec.matchingPrecedence = level, precedence
    if by:
        spec.distinguisherMethod.type = by
    rule = spec.rules.add(subjects=subjects, resourceRules=rules)
    if urls is not None:
        rule.nonResourceRules.append(urls)
    return found


_PROBES = flow.NonResourcePolicyRule(verbs=["get"], nonResourceURLs=["/healthz", "/readyz", "/livez"])
_NODES = _resources(("",), ("nodes", "nodes/status"), cluster=True)
_ELECTION = _resources(*_LEASES, ("get", "create", "update"))

SCHEMAS = (
    _schema(EXEMPT, EXEMPT, 1, "", [_group("system:masters")]),
    _schema(CATCH_ALL, CATCH_ALL, 10_000, "ByUser", _EVERYBODY),
    _schema("system-nodes", "system", 500, "ByUser", [_group("system:nodes")]),
    _schema(
        "system-node-high", "node-high", 400, "ByUser", [_group("system:nodes")], (_NODES, _resources(*_LEASES)), None
    ),
    _schema("probes", EXEMPT, 2, "", _EVERYBODY, (), _PROBES),
    _schema(
        "system-leader-election",
        "leader-election",
        100,
        "ByUser",
        (_MANAGER, _SCHEDULER, _SYSTEM_ACCOUNTS),
        (_ELECTION,),
        None,
    ),
    _schema("kube-controller-manager", "workload-high", 800, "ByNamespace", [_MANAGER]),
    _schema("kube-scheduler", "workload-high", 800, "ByNamespace", [_SCHEDULER]),
    _schema("kube-system-service-accounts", "workload-high", 900, "ByNamespace", [_SYSTEM_ACCOUNTS]),
    _schema("service-accounts", "workload-low", 9_000, "ByUser", [_group("system:serviceaccounts")]),
    _schema("global-default", "global-default", 9_900, "ByUser", _EVERYBODY),
)

MANDATORY_LEVELS = {one.metadata.name: one for one in LEVELS[:2]}
MANDATORY_SCHEMAS = {one.metadata.name: one for one in SCHEMAS[:2]}
"""By name."""
