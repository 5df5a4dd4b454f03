"""A long story in few lines: what is alike is counted, what is telling is never crowded out, filters open it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kemu.errors import KemuError
from kemu.lab.checks.history import History
from kemu.lab.tell import happenings, stories, story_tables
from kemu.lab.tell.selections import Selection
from tests.checks.logs import Log

WORKLOAD = "kemu.dev/workload"


def history_of(log: Log) -> History:
    history = History()
    for event in log.events:
        history.feed(*event)
    return history


def told(log: Log, limit: int, **selection: Any) -> list[tuple[str, str, str, str]]:
    found = stories.find(history_of(log), Selection(**selection))
    return [(line.when(), line.who, line.what, line.why) for line in stories.told(found, limit).lines]


def lost_nodes() -> Log:
    """18 web and 37 batch pods on three nodes that fall silent; 25 of batch have finished by then."""
    log = Log()
    for place, workload in enumerate(["web"] * 18 + ["batch"] * 37):
        log.pod(0.1, f"{workload}-{place}", node=f"n{place % 3}", labels={WORKLOAD: workload})
    for place in range(18, 43):
        log.pod(5 + place / 100, f"batch-{place}", phase="Succeeded")
    for place, workload in enumerate(["web"] * 18 + ["batch"] * 37):
        log.pod(60 + place / 100, f"{workload}-{place}", disruption="DeletionByTaintManager")
    return log


def storm(pods: int, victims: int) -> Log:
    """``victims`` of ``pods`` small pods make room for two large ones."""
    log = Log()
    for place in range(pods):
        log.pod(place / 1000, f"w-{place}", cpu="1", labels={WORKLOAD: "w"})
        log.pod(place / 1000, f"w-{place}", node=f"n{place % 7}")
    for name in ("big-0", "big-1"):
        log.pod(50, name, cpu="20", priority=100)
    for place in range(victims):
        log.victim(51 + place * 20, f"w-{place}", f"big-{place % 2}", f"n{place % 7}")
    return log


def test_what_is_alike_is_counted_by_workload() -> None:
    assert told(lost_nodes(), 5)[-1] == (
        "60.000-60.540 s",
        "taint-eviction",
        "18 web and 37 batch pods are evicted from n0, n1 and n2, of which 25 had finished already",
        "",
    )


def test_what_is_rare_and_telling_is_not_crowded_out() -> None:
    story = stories.told(stories.find(history_of(storm(2000, 36))), 4)
    assert [line.what for line in story.lines] == [
        "2000 w pods are created",
        "2000 w pods are bound to 7 nodes",
        "big-0 and big-1 are created",
        "36 w pods are preempted on 7 nodes",
    ]
    assert story.lines[-1].why == "make room for big-0 and big-1 (priority 100 > 0)"
    assert story.left_out == {}
    story = stories.told(stories.find(history_of(storm(2000, 36))), 1)
    assert [line.what for line in story.lines] == ["36 w pods are preempted on 7 nodes"]
    assert story.left_out == {"bound": 2000, "created": 2002}


def test_what_is_usual_takes_few_lines_even_where_there_is_room() -> None:
    log = Log()
    for number in range(20):
        for place in range(3):
            log.pod(100 * number + place, f"w-{3 * number + place}", cpu="1", labels={WORKLOAD: "w"})
    assert [what for _, _, what, _ in told(log, 30)] == ["60 w pods are created"]
    log = Log()
    for number in range(3):
        for place in range(20):
            log.pod(100 * number + place / 10, f"w-{20 * number + place}", cpu="1", labels={WORKLOAD: "w"})
    assert [(when, what) for when, _, what, _ in told(log, 30)] == [
        ("0.0-1.9 s", "20 w pods are created"),
        ("100.0-101.9 s", "20 w pods are created"),
        ("200.0-201.9 s", "20 w pods are created"),
    ]


def test_with_room_each_preemption_has_a_line() -> None:
    lines = told(storm(2000, 5), 12)
    assert [what for _, _, what, _ in lines if "preempted" in what] == [f"w-{n} is preempted on n{n}" for n in range(5)]


def test_three_pods_are_named_and_more_than_four_workloads_summed_up() -> None:
    log = Log()
    for place, count in enumerate((9, 8, 7, 2, 1)):
        for number in range(count):
            log.pod(0, f"w{place}-{number}", cpu="1")
            log.pod(1, f"w{place}-{number}", phase="Failed", reason="Evicted", node="n1")
    assert [what for _, _, what, _ in told(log, 7)] == [
        *(f"{count} w{place} pods are created" for place, count in enumerate((9, 8, 7))),
        "w3-0 and w3-1 are created",
        "w4-0 is created",
        "9 w0, 8 w1, 7 w2 and 3 other pods are evicted from n1",
    ]


def test_those_that_wait_at_the_end_are_told_with_how_long_and_why() -> None:
    log = Log()
    for place in range(5):
        log.pod(place, f"w-{place}", cpu="1")
        message = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No victims."
        data = {"pod": f"default/w-{place}", "uid": f"uid-w-{place}", "node": "", "result": "unschedulable"}
        log.add(9, "scheduler/default-scheduler/0", "sched.attempt", **data, message=message)
    assert not any("wait" in what for _, _, what, _ in told(log, 4))
    log.ended(60)
    assert told(log, 4)[-1] == (
        "60.000 s",
        "",
        "5 w pods still wait for a node at the end",
        "for 56.0 to 60.0 s; 0/3 nodes are available: 3 Insufficient cpu",
    )
    assert told(log, 0)[-1][2:] == (
        "w-4 still waits for a node at the end",
        "for 56.0 s: 0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No victims.",
    )


def refused_bindings(log: Log) -> None:
    for place, by in enumerate(("scheduler/a/0", "scheduler/a/1", "scheduler/a/1")):
        log.pod(1, f"p-{place}", scheduler="a")
        data = {"verb": "bind", "resource": "pods", "namespace": "default", "name": f"p-{place}", "start": 0}
        more = {"uid": f"uid-p-{place}", "by": by, "reason": "Conflict", "message": "it is on n1 already"}
        log.add(2, "apiserver/0", "api.refused", **data, **more)


def test_lost_races_are_told_of_each_replica_by_its_name() -> None:
    log = Log()
    refused_bindings(log)
    for replica in range(2):
        data = {"pod": "default/p-0", "uid": "uid-p-0", "node": "n1", "result": "scheduled"}
        log.add(3, f"scheduler/a/{replica}", "sched.attempt", **data, message="")
    assert told(log, 0, kinds=("conflict",)) == [
        ("2.000 s", "scheduler a/0", "p-0 is not bound: Conflict", "it is on n1 already"),
        ("2.000 s", "scheduler a/1", "p-1 is not bound: Conflict", "it is on n1 already"),
        ("2.000 s", "scheduler a/1", "p-2 is not bound: Conflict", "it is on n1 already"),
    ]


def test_what_failed_comes_last() -> None:
    history = history_of(storm(3, 1))
    verdict = {
        "expectations": [{"id": "expect-0", "holds": False, "detail": "it did not", "text": ""}],
        "checks": [
            {"id": "no-pod-starves", "holds": False, "detail": "default/w-1 waited 9 s", "asked": True},
            {"id": "watch-has-no-gaps", "holds": False, "detail": "a gap", "asked": False},
        ],
    }
    lines = stories.told(stories.find(history, None, verdict), 0).lines
    assert [(line.kind, line.what, line.why) for line in lines[-2:]] == [
        ("check", "expect-0 does not hold", "it did not"),
        ("check", "no-pod-starves does not hold", "default/w-1 waited 9 s"),
    ]


class TestFilters:
    def test_of_a_pod_with_those_that_make_room_for_it(self) -> None:
        assert [what for _, _, what, _ in told(storm(10, 3), 0, pod="big-0")] == [
            "big-0 is created",
            "w-0 is preempted on n0",
            "w-2 is preempted on n2",
        ]

    def test_they_compose(self) -> None:
        log = storm(100, 36)
        selected = {"node": "n1", "workload": "w", "kinds": ("preempted", "bound"), "from_ns": 0}
        assert [what for _, _, what, _ in told(node_named(log), 0, **selected, until_ns=60 * 10**9)] == [
            *(f"w-{place} is bound to n1" for place in range(1, 100, 7)),
        ]
        assert len(told(node_named(log), 0, **selected)) == 15 + 5

    @pytest.mark.parametrize(
        ("selection", "text"),
        [
            ({"pod": "w-1O"}, "--pod: no pod w-1O; did you mean w-1 or w-9 or w-8 or w-7?"),
            ({"pod": "zzz"}, "--pod: no pod zzz; there are w-0, w-1, w-2, w-3, w-4, w-5 and 6 more"),
            ({"node": "n11"}, "--node: no node n11; did you mean n1?"),
            ({"workload": "bigg"}, "--workload: no workload bigg; did you mean big?"),
            ({"kinds": ("preemptd",)}, "--kind: no kind preemptd; did you mean preempted?"),
            (
                {"kinds": ("xyz",)},
                (
                    "--kind: no kind xyz; there are created, bound, running, finished, unschedulable, nominated, "
                    "deleted, resized, volume, device, collected, object, preempted, evicted, rejected, conflict, "
                    "killed, lost, node, refused, error, scaled, elected, probed, job, rollout, autoscaled, exited, "
                    "failed, fault, disturbance, waiting, check"
                ),
            ),
            ({"from_ns": 2, "until_ns": 1}, "--from is later than --to"),
        ],
    )
    def test_what_the_run_does_not_have_is_a_mistake(self, selection: dict[str, Any], text: str) -> None:
        with pytest.raises(KemuError) as caught:
            stories.find(history_of(node_named(storm(10, 1))), Selection(**selection))
        assert str(caught.value) == text


def node_named(log: Log) -> Log:
    log.node(0, "n1")
    return log


class TestRows:
    """In the terminal."""

    def test_reasons_have_a_column_where_there_is_room(self) -> None:
        lines = stories.told(stories.find(history_of(storm(2000, 36))), 4).lines
        assert [row.plain for row in story_tables.rows(lines, 120)] == [
            "   0.0-2.0 s  user       2000 w pods are created             wants 1 cpu",
            "   0.0-2.0 s  scheduler  2000 w pods are bound to 7 nodes    waited 0.000 s",
            "    50.000 s  user       big-0 and big-1 are created         priority 100, wants 20 cpu",
            (
                "51.0-751.0 s  scheduler  36 w pods are preempted on 7 nodes  "
                "make room for big-0 and big-1 (priority 100 > 0)"
            ),
        ]

    def test_and_follow_the_phrase_where_there_is_none(self) -> None:
        lines = stories.told(stories.find(history_of(storm(2000, 36))), 4).lines
        assert [row.plain.rstrip() for row in story_tables.rows(lines, 60)][-3:] == [
            "51.0-751.0 s  scheduler  36 w pods are preempted on 7 nodes",
            "                           make room for big-0 and big-1",
            "                           (priority 100 > 0)",
        ]

    @pytest.mark.parametrize(("width", "height"), [(60, 20), (80, 24), (200, 50)])
    def test_a_story_fits_the_screen(self, width: int, height: int) -> None:
        found = stories.find(history_of(storm(2000, 36)))
        story = story_tables.fitted(found, width, height)
        text = "\n".join(row.plain for row in story_tables.rows(story.lines, width))
        assert len(text.splitlines()) <= height
        assert max(map(len, text.splitlines())) <= width
        assert "preempted" in text


def test_the_documentation_names_all_kinds() -> None:
    text = (Path(__file__).parents[2] / "docs" / "story.md").read_text()
    listed = re.search(r"`--kind KIND` \| these kinds of events: `([a-z ]+)`", text)
    assert listed is not None
    assert listed[1].split() == list(happenings.KINDS)


def chain() -> Log:
    """critical pods preempt web and batch pods, and the replacements of the web pods batch pods."""
    log = Log()
    for place in range(60):
        workload = "web" if place < 20 else "batch"
        log.pod(place / 1000, f"{workload}-{place}", labels={WORKLOAD: workload}, priority=100 * (place < 20))
        log.pod(place / 1000, f"{workload}-{place}", node=f"n{place % 7}")
    for place in range(20):
        log.pod(50, f"critical-{place}", priority=1000, labels={WORKLOAD: "critical"})
        log.victim(51 + place / 100, f"web-{place}", f"critical-{place}", f"n{place % 7}")
        log.pod(51.5, f"web-{100 + place}", priority=100, labels={WORKLOAD: "web"})
        log.victim(51.6 + place / 100, f"batch-{20 + place}", f"web-{100 + place}", f"n{place % 7}")
        log.victim(51 + place / 100, f"batch-{40 + place}", f"critical-{place}", f"n{place % 7}")
    return log


def test_who_was_preempted_for_whom_is_told_apart() -> None:
    assert [(what, why) for _, _, what, why in told(chain(), 12) if "preempted" in what] == [
        (
            "20 web and 20 batch pods are preempted on 7 nodes",
            "make room for 20 critical pods (priority 1000 > 0 to 100)",
        ),
        ("20 batch pods are preempted on 7 nodes", "make room for 20 web pods (priority 100 > 0)"),
    ]
