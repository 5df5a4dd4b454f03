"""The users of a scenario, and who its events may be done as.

Role: one step of :mod:`kemu.lab.scenario.loading.loader`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kemu.emulated.apiserver.authorization import roles
from kemu.emulated.objects import identities
from kemu.emulated.settings.shapes import Report
from kemu.lab.scenario.format.events import Event
from kemu.runtime.words import did_you_mean

_OF_THE_SYSTEM = (identities.NODE_PREFIX, identities.SERVICE_ACCOUNT_PREFIX)


def read(checked: Sequence[Any], report: Report) -> dict[str, dict[str, Any]]:
    """By name, their ``groups`` and ``roles``."""
    found: dict[str, dict[str, Any]] = {}
    known = roles.known().cluster_roles if checked else {}
    for index, one in enumerate(checked):
        if not isinstance(one, dict) or "name" not in one:
            continue
        path = ("spec", "users", index)
        if one["name"] in found:
            report.add((*path, "name"), f"there is a user {one['name']} already")
        given = []
        for number, role in enumerate(one.get("roles", ())):
            stated = role if isinstance(role, dict) else {"role": role}
            name = stated.get("role", "")
            if name not in known:
                close = did_you_mean(name, [*known])
                report.add((*path, "roles", number), f"no cluster has a ClusterRole {name!r} from the beginning", close)
            else:
                given.append({"role": name, "namespace": stated.get("namespace", "")})
        found[one["name"]] = {"groups": list(one.get("groups", ())), "roles": given}
    return found


def check_actors(events: Iterable[Event], users: Mapping[str, Any], report: Report) -> None:
    """Complain of events by somebody who does not exist."""
    for event in events:
        name = event.acts_as
        if name and name not in users and name != identities.KUBE_SCHEDULER and not name.startswith(_OF_THE_SYSTEM):
            hint = did_you_mean(name, [*users]) or "add it to users"
            report.add(("spec", "events", event.index, "as"), f"there is no user {name!r}", hint)
