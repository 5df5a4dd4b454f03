"""The users of a scenario, and who its events may be done as.

Role: one step of :mod:`kemu.lab.scenario.loading.loader`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kemu.emulated.objects import identities
from kemu.emulated.settings.shapes import Report
from kemu.lab.scenario.format.events import Event
from kemu.lab.scenario.format.users import User
from kemu.runtime.words import did_you_mean

_OF_THE_SYSTEM = (identities.NODE_PREFIX, identities.SERVICE_ACCOUNT_PREFIX)


def by_name(stated: Sequence[Any], report: Report) -> dict[str, User]:
    """Each name once."""
    found: dict[str, User] = {}
    for index, user in enumerate(stated):
        if isinstance(user, User):
            if user.name in found:
                report.add(("spec", "users", index, "name"), f"there is a user {user.name} already")
            found[user.name] = user
    return found


def check_actors(events: Iterable[Event], users: Mapping[str, Any], report: Report) -> None:
    """Complain of events by users that do not exist."""
    for event in events:
        name = event.acts_as
        if name and name not in users and name != identities.KUBE_SCHEDULER and not name.startswith(_OF_THE_SYSTEM):
            hint = did_you_mean(name, [*users]) or "add it to users"
            report.add(("spec", "events", event.index, "as"), f"there is no user {name!r}", hint)
