"""People and programs as whom events may be done, and what they may do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kemu.emulated.apiserver.authorization import roles
from kemu.emulated.settings.declared import REQUIRED, Complaint, Section, setting
from kemu.emulated.settings.shapes import NAME, ListOf, ScalarOr, Text
from kemu.runtime.words import did_you_mean


@dataclass(frozen=True, kw_only=True)
class Role:
    role: str = setting(Text(), "A ClusterRole that every cluster has: view, edit, admin, cluster-admin, …", REQUIRED)
    namespace: str | None = setting(NAME, "Only there; everywhere by default.")


@dataclass(frozen=True, kw_only=True)
class User:
    name: str = setting(Text(), "The name of the user.", REQUIRED)
    groups: list[str] = setting(ListOf(Text()), "The user's groups.", [])
    roles: list[Role | str] = setting(
        ListOf(ScalarOr(Text(), Section(Role))), "What the user may do; RoleBindings in manifests may give more.", []
    )

    def complaints(self) -> Iterator[Complaint]:
        for number, stated in enumerate(self.roles):
            name = stated.role if isinstance(stated, Role) else stated
            known = roles.known().cluster_roles
            if isinstance(name, str) and name not in known:
                text = f"no cluster has a ClusterRole {name!r} from the beginning"
                yield Complaint(("roles", number), text, did_you_mean(name, [*known]))

    def rights(self) -> dict[str, object]:
        """As API servers are told."""
        given = [Role(role=one) if isinstance(one, str) else one for one in self.roles]
        return {
            "groups": self.groups,
            "roles": [{"role": one.role, "namespace": one.namespace or ""} for one in given],
        }
