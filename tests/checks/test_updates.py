"""An update without a version replaces nothing that its client had not been shown."""

from __future__ import annotations

import pytest

from kemu.lab.checks import registry
from tests.checks.logs import Log

CHECK = "updates-replace-what-was-seen"
CONTROLLER = "controller/job"


def scene(actor: str, *, shown: bool, by_ack: bool = False, version: bool = False) -> Log:
    """Revision 1 is in the actor's list, somebody else makes revision 2, and the actor's update makes revision 3."""
    log = Log()
    log.pod(1, "a")
    log.listed(2, actor, 1, ("a", 1))
    log.pod(3, "a", phase="Running")
    if shown and by_ack:
        log.acked(3.2, actor, 2, took=0.1)
    elif shown:
        log.heard(3.2, actor, "M2:a")
    if not version:
        log.add(4, actor, "client.unconditional", resource="pods", key="/registry/pods/default/a")
    if not shown:
        log.heard(4.1, actor, "M2:a")
    log.pod(4.2, "a", phase="Succeeded")
    log.acked(4.3, actor, 3, took=0.3)
    return log


def verdict(log: Log) -> bool | None:
    _, results = registry.judge(log.events)
    return next(result.holds for result in results if result.id == CHECK)


@pytest.mark.parametrize(("shown", "by_ack"), [(True, False), (True, True), (False, False)])
def test_what_had_been_shown_may_be_replaced(shown: bool, by_ack: bool) -> None:
    assert verdict(scene(CONTROLLER, shown=shown, by_ack=by_ack)) is shown


def test_users_replace_what_they_like() -> None:
    assert verdict(scene("user/default", shown=False)) is None


def test_the_server_looks_after_updates_that_state_a_version() -> None:
    assert verdict(scene(CONTROLLER, shown=False, version=True)) is None


def test_an_update_that_changed_nothing_replaced_nothing() -> None:
    log = Log()
    log.pod(1, "a")
    log.listed(2, CONTROLLER, 0)
    log.pod(3, "a", phase="Running")
    log.add(4, CONTROLLER, "client.unconditional", resource="pods", key="/registry/pods/default/a")
    log.acked(4.3, CONTROLLER, 2, took=0.3)
    assert verdict(log) is None
