"""The keys of users: who may do what in the cluster of a scenario."""

from __future__ import annotations

from kemu.emulated.settings.shapes import NAME, Key, ListOf, Record, ScalarOr, Text

_ROLE = Record(
    {
        "role": Key(Text(), "A ClusterRole that every cluster has: view, edit, admin, cluster-admin, …", required=True),
        "namespace": Key(NAME, "Only there; everywhere by default."),
    }
)
USER = Record(
    {
        "name": Key(Text(), "The name of the user.", required=True),
        "groups": Key(ListOf(Text()), "The user's groups."),
        "roles": Key(ListOf(ScalarOr(Text(), _ROLE)), "What the user may do; RoleBindings in manifests may give more."),
    }
)
