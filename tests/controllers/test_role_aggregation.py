"""ClusterRoles that have the rules of others."""

from __future__ import annotations

from pathlib import Path

from kemu.messages.k8s import rbac_v1_pb2
from tests.controllers.test_node_failures import play


def role(name: str, resource: str, label: str = "admin") -> str:
    rule = f"{{apiGroups: [x.io], resources: [{resource}], verbs: [get]}}"
    return (
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, "
        f"metadata: {{name: {name}, labels: {{aggregate: {label}}}}}, rules: [{rule}]}}"
    )


AGGREGATE = (
    "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all, labels: {aggregate: admin}}, "
    "aggregationRule: {clusterRoleSelectors: [{matchLabels: {aggregate: admin}}, {matchLabels: {aggregate: also}}]}}"
)


def test_rules_follow_the_roles_that_are_selected(tmp_path: Path) -> None:
    """By selector, then by name, each rule once; its own rules do not count."""
    found = play(tmp_path, f"""
        duration: 30s
        nodes: []
        manifests: [{AGGREGATE}, {role("b", "bs")}, {role("z", "zs", "also")}, {role("other", "os", "none")}]
        events:
        - {{at: 10s, create: {role("a", "as")}}}
        - {{at: 12s, create: {role("same", "bs")}}}
        - {{at: 20s, delete: {{kind: ClusterRole, name: b}}}}
    """)  # fmt: skip
    rules = []
    for _, key, value in found.written:
        if key.endswith("/clusterroles/all"):
            written = rbac_v1_pb2.ClusterRole.FromString(value)
            rules.append([resource for rule in written.rules for resource in rule.resources])
    assert [one for one, before in zip(rules, [None, *rules], strict=False) if one != before] == [
        [],
        ["bs", "zs"],
        ["as", "bs", "zs"],
    ]
    assert rules[-1] == ["as", "bs", "zs"]
