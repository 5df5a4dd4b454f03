"""The detector gangs-are-whole, fed with what the store holds."""

from __future__ import annotations

import pytest

from kemu.emulated.objects.conversion import convert
from kemu.lab.checks.limits import Limits
from kemu.lab.checks.registry import Judge
from kemu.lab.checks.results import Result
from kemu.messages.k8s import core_v1_pb2, scheduling_v1alpha2_pb2
from kemu.runtime.runlog.events import typed

SECOND = 1_000_000_000
GROUP = "/registry/podgroups/default/gang"


def group(least: int) -> bytes:
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
    data = {"metadata": {"name": "gang", "namespace": "default"}, "spec": spec}
    return convert.from_json(scheduling_v1alpha2_pb2.PodGroup, data).SerializeToString()


def member(name: str, node: str = "", phase: str = "Pending") -> bytes:
    data = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"schedulingGroup": {"podGroupName": "gang"}, **({"nodeName": node} if node else {})},
        "status": {"phase": phase},
    }
    return convert.from_json(core_v1_pb2.Pod, data).SerializeToString()


def judged(
    *writes: tuple[int, str, bytes | None], end_s: int = 60, reason: str = "deadline", limits: Limits | None = None
) -> Result:
    """Each write at its second, under a key or of the pod of that name."""
    judge = Judge(within=limits or Limits())
    for number, (second, name, value) in enumerate(writes, start=1):
        key = name if name.startswith("/") else f"/registry/pods/default/{name}"
        change = [0 if value is not None else 1, key, value or b"", 1, 1]
        data = {"rev": number, "changes": [change], "bases": None}
        judge.feed(second * SECOND, "store", "store.txn", typed("store.txn", data))
    judge.feed(end_s * SECOND, "runner", "run.ended", typed("run.ended", {"reason": reason, "still": True}))
    return next(one for one in judge.results() if one.id == "gangs-are-whole")


PART = ((1, GROUP, group(2)), (2, "a", member("a")), (2, "b", member("b")), (5, "a", member("a", "node-1")))


def test_a_part_that_holds_room_is_found_with_who_lacks() -> None:
    found = judged(*PART)
    assert (found.holds, found.detector, found.asked) == (False, True, False)
    assert found.detail == "gang gang had a part of its 2 members on nodes from 5.000 s to 60.000 s: a, and not b"


def test_a_member_that_was_lost_is_named() -> None:
    found = judged(*PART, (6, "b", member("b", "node-2")), (9, "a", None))
    assert found.detail == "gang gang had a part of its 2 members on nodes from 9.000 s to 60.000 s: b, and not a"


def test_a_part_that_stays_one_is_found_at_once() -> None:
    assert judged(*PART, end_s=6).holds is True
    assert judged(*PART, end_s=6, reason="idle").holds is False


def test_to_a_scheduler_without_the_gate_a_group_says_nothing() -> None:
    assert judged(*PART, limits=Limits(gang_schedulers=("other",))).holds is True


def test_a_limit_asks_it() -> None:
    assert judged(*PART, limits=Limits(max_part_ns=10 * SECOND)).asked
    assert judged(*PART, limits=Limits(max_part_ns=60 * SECOND)).holds is True


@pytest.mark.parametrize(
    "then",
    [
        ((20, "b", member("b", "node-1")),),
        ((20, "a", None),),
        ((20, "a", member("a", "node-1", "Failed")),),
        ((6, "b", member("b", "node-1")), (9, "b", member("b", "node-1", "Succeeded"))),
        ((6, "b", member("b", "node-1")), (9, GROUP, group(1)), (9, "b", None)),
    ],
    ids=["soon whole", "soon gone", "soon failed", "one has succeeded", "it needs no more"],
)
def test_these_are_none(then: tuple[tuple[int, str, bytes | None], ...]) -> None:
    assert judged(*PART, *then).holds is True


def test_a_part_that_became_whole_too_late_is_found() -> None:
    found = judged(*PART, (50, "b", member("b", "node-2")))
    assert found.detail == "gang gang had a part of its 2 members on nodes from 5.000 s to 50.000 s: a, and not b"


def test_without_gangs_there_is_nothing_to_judge() -> None:
    assert judged((1, "a", member("a", "node-1"))).holds is None
