"""job-counts-each-pod-once: what statuses of Jobs must never say."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kemu.lab.checks.history import History
from kemu.lab.checks.workloads import job_counts
from kemu.messages.k8s import batch_v1_pb2
from kemu.runtime.runlog.events import Transaction


def judged(
    *statuses: tuple[int, Sequence[str]], mode: str = "NonIndexed", field: str = "failed", begin_ns: int = 1
) -> bool | None:
    """``statuses``: a counter and the list, one write after the other."""
    check = job_counts.JobCountsEachPodOnce()
    for number, (count, uids) in enumerate(statuses):
        job = batch_v1_pb2.Job()
        job.metadata.uid, job.spec.completionMode = "u", mode
        setattr(job.status, field, count)
        getattr(job.status.uncountedTerminatedPods, field).extend(uids)
        change = (0, f"{job_counts.JOBS}default/j", job.SerializeToString(deterministic=True), 0, 0)
        check.on_event(begin_ns + number, "store", Transaction(rev=number, changes=[change]))
    return check.result(History()).holds


def test_a_job_may_come_with_what_it_has_counted() -> None:
    assert judged((1, ""), (1, "a"), (2, ""), begin_ns=0) is True
    assert judged((1, ""), (3, ""), begin_ns=0) is False


@pytest.mark.parametrize("field", ["failed", "succeeded"])
def test_a_pod_leaves_the_list_when_it_is_counted(field: str) -> None:
    assert judged((0, "ab"), (1, "b"), (2, "c"), (3, ""), field=field) is True


@pytest.mark.parametrize(
    "statuses",
    [
        ((0, "a"), (2, "")),
        ((0, "a"), (0, "")),
        ((0, "a"), (1, "a")),
        ((0, "a"), (1, ""), (1, "a")),
        ((1, ""),),
    ],
    ids=["twice at once", "never", "still listed", "a second time", "without the list"],
)
def test_what_is_wrong(statuses: tuple[tuple[int, Sequence[str]], ...]) -> None:
    assert judged(*statuses) is False
