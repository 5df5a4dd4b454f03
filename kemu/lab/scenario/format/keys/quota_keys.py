"""The keys of ``limitedResources``, as in the configuration of the admission plugin ResourceQuota."""

from __future__ import annotations

from kemu.emulated.objects import resources
from kemu.emulated.objects.quotas import registry, scopes
from kemu.emulated.settings.shapes import Choice, Key, ListOf, Record, Text

_GROUPS = tuple(dict.fromkeys(resources.BY_PLURAL[plural].group for plural in registry.EVALUATORS))

_SCOPE = Record(
    {
        "scopeName": Key(Choice((scopes.PRIORITY_CLASS, *scopes.EXISTENCE_ONLY)), "The scope.", required=True),
        "operator": Key(Choice(scopes.OPERATORS), "How values select; Exists: any class.", required=True),
        "values": Key(ListOf(Text()), "Names of priority classes, for In and NotIn."),
    }
)

LIMITED_RESOURCE = Record(
    {
        "apiGroup": Key(Choice(_GROUPS), "The API group of the resource; none by default, the core group."),
        "resource": Key(Choice(tuple(registry.EVALUATORS)), "A kind, by its plural.", required=True),
        "matchContains": Key(
            ListOf(Text()), "Amounts are limited whose names contain one of these: cpu, storageclass.storage.k8s.io/."
        ),
        "matchScopes": Key(ListOf(_SCOPE), "Objects in one of these scopes are limited."),
    }
)
