"""No user gives away rights that it lacks (``pkg/registry/rbac``: roles, bindings and ``ConfirmNoEscalation``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import NamedTuple

from kemu import errors
from kemu.emulated.apiserver.authorization import roles
from kemu.emulated.apiserver.authorization.attributes import Attributes
from kemu.emulated.apiserver.authorization.authorizers import Authorizer
from kemu.emulated.objects import resources
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import rbac_v1_pb2

GROUP = "rbac.authorization.k8s.io"
KINDS = frozenset(roles.KINDS)
Binding = rbac_v1_pb2.RoleBinding | rbac_v1_pb2.ClusterRoleBinding
Role = rbac_v1_pb2.Role | rbac_v1_pb2.ClusterRole
Checked = Role | Binding

Check = Callable[[Resource, Checked, Checked | None], None]
"""Raises Forbidden for a role or a binding that gives more than its writer has. It comes with what it was before."""

CHECK: ContextVar[Check | None] = ContextVar("check", default=None)
"""The check for the request that is being carried out; None: its writer may give everything."""


class _Right(NamedTuple):
    """One verb on one kind, or on one URL."""

    verb: str
    group: str
    resource: str
    name: str
    """Empty: of all names."""
    path: str

    def is_covered(self, rule: roles.Rule) -> bool:
        """``ruleCovers``."""
        if self.verb not in rule.verbs and "*" not in rule.verbs:
            return False
        if self.path:
            return any(
                self.path == one or (one.endswith("*") and self.path.startswith(one.rstrip("*"))) for one in rule.paths
            )
        if self.group not in rule.groups and "*" not in rule.groups:
            return False
        subresource = self.resource.partition("/")[2]
        if rule.resources.isdisjoint((self.resource, "*", f"*/{subresource}" if subresource else "*")):
            return False
        return not rule.names or self.name in rule.names


def check_of(authorizer: Authorizer, by: str) -> Check | None:
    """What the requests of a caller have to pass."""
    if authorizer.may_everything(by):
        return None

    def check(resource: Resource, obj: Checked, old: Checked | None) -> None:
        namespace = obj.metadata.namespace
        if isinstance(obj, Binding):
            kind = "clusterroles" if obj.roleRef.kind == "ClusterRole" else "roles"
            verb, rights = "bind", list(_of_role(authorizer, kind, obj.roleRef.name, namespace))
            asked = Attributes(verb, GROUP, kind, "", namespace, obj.roleRef.name, "")
        else:
            verb, rights = "escalate", list(_of_rules(obj.rules))
            asked = Attributes(verb, GROUP, resource.plural, "", namespace, obj.metadata.name, "")
        if authorizer.allows(by, asked)[0]:
            return
        held = [
            rule for grant in authorizer.grants_of(by) if grant.namespace in ("", namespace) for rule in grant.rules
        ]
        missing = [right for right in rights if not any(right.is_covered(rule) for rule in held)]
        if missing:
            user = authorizer.user(by)
            groups = " ".join(_quoted(group) for group in user.groups)
            text = (
                f'{resource.qualified} "{obj.metadata.name}" is forbidden: user "{user.name}" (groups=[{groups}]) is '
            )
            text += "attempting to grant RBAC permissions not currently held:\n" + "\n".join(_compact(missing))
            raise errors.Forbidden(text, kind=resource.plural, name=obj.metadata.name)
        # It can gather anything, and keep others from taking it back.
        if (_aggregates(obj) or _aggregates(old)) and not all(
            any(right.is_covered(rule) for rule in held) for wanted in roles.FULL for right in _of_rule(wanted)
        ):
            text = (
                f'{resource.qualified} "{obj.metadata.name}" is forbidden: must have cluster-admin privileges to use '
            )
            raise errors.Forbidden(f"{text}the aggregationRule", kind=resource.plural, name=obj.metadata.name)

    return check


def _aggregates(role: Checked | None) -> bool:
    return isinstance(role, rbac_v1_pb2.ClusterRole) and bool(role.aggregationRule.clusterRoleSelectors)


def _of_role(authorizer: Authorizer, kind: str, name: str, namespace: str) -> Iterator[_Right]:
    found = authorizer.rules_of_role(kind, name, namespace)
    if found is None:
        row = resources.BY_PLURAL[kind]
        raise errors.NotFound(f'{row.qualified} "{name}" not found', kind=kind, name=name)
    for rule in found:
        yield from _of_rule(rule)


def _of_rule(rule: roles.Rule) -> Iterator[_Right]:
    return _broken_down(sorted(rule.verbs), sorted(rule.groups), sorted(rule.resources), sorted(rule.names), rule.paths)


def _of_rules(rules: Iterable[rbac_v1_pb2.PolicyRule]) -> Iterator[_Right]:
    """The rights of a role that is an object."""
    for rule in rules:
        yield from _broken_down(rule.verbs, rule.apiGroups, rule.resources, rule.resourceNames, rule.nonResourceURLs)


def _broken_down(
    verbs: Sequence[str], groups: Sequence[str], plurals: Sequence[str], names: Sequence[str], paths: Sequence[str]
) -> Iterator[_Right]:
    """``BreakdownRule``."""
    for group in groups:
        for plural in plurals:
            for verb in verbs:
                for name in names or ("",):
                    yield _Right(verb, group, plural, name, "")
    for path in paths:
        for verb in verbs:
            yield _Right(verb, "", "", "", path)


def _compact(rights: Iterable[_Right]) -> list[str]:
    """``CompactRules`` and ``CompactString``: the verbs on one kind in one line."""
    verbs: dict[tuple[str, str, str, str], list[str]] = {}
    for right in rights:
        found = verbs.setdefault((right.group, right.resource, right.name, right.path), [])
        if right.verb not in found:
            found.append(right.verb)
    lines = set()
    for (group, plural, name, path), allowed in verbs.items():
        parts = [("APIGroups", [group]), ("Resources", [plural])] if plural else [("NonResourceURLs", [path])]
        if name:
            parts.append(("ResourceNames", [name]))
        parts.append(("Verbs", allowed))
        lines.add("{" + ", ".join(f"{key}:[{' '.join(map(_quoted, words))}]" for key, words in parts) + "}")
    return sorted(lines)


def _quoted(word: str) -> str:
    return f'"{word}"'
