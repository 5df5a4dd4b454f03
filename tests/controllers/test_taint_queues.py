"""The queue of nodes to be tainted against the real one, and the order in which one look puts nodes into it."""

from __future__ import annotations

import dataclasses
import re

import pytest

from kemu.emulated.controllers import node_health, taint_queues

SECOND_NS = 10**9

REAL = [
    ("+c+c-a..?(0).?(0).+c+g-e.+b.+a+e.?-e?+a+f+h+e(1).?+g.+a+a?+b+e+g..?+d?+b+h", "c10 "),
    ("+h.?+g-e.+g+c?(0.01)+f..-c?(1)..(0.01)-f?.+f..+f.+c+d+d(0)?+f+f?+b(0.01)+d+g-e.?+c+c+a", "h5 g30 "),
    ("..+a+g+e+a+d-a..-a?..?+c+h+d+c-c+h+a?+b..?+c?+a+e.?+f+d+h+d-g?.-b+g.+g+g", "e20 d30 g40 "),
    ("(0.1).+b?..+d.+f..+c(0.01)+b+b+b?.+a+c.+e+a.-g?+a+a-c+d+g.?+a-b+g(0)+f-g(1)?-f+h+a+h", "b5 d30 "),
    ("?.+h..+f+a..-f+c?.+a-h.+a+g(0.1)+a?+a?+f??+f+f+f+e.+f?+a?.+h+b+e..+g.+f+a", "h25 c35 "),
    ("..?+d..?.+a+h+c?(1)?+h+c+d+h+h.-g+g+c+b?+e+e+c+h+d+h.+a-b???+g-g+f?....", "d20 a30 d35 "),
    ("(1)?+c.?+h.-d+d+b?.?..-g..(0)?+c+a+g.-f+c+e.-a+e+a?+e.+g.??+e-h?+b+b+g?", "c5 h10 b15 "),
    (".+f+e(0)+a.(0.1)+c+a+g?+e.+h-f+b+h?+a?+f+f+a+a-d+a.-f??+e??+g.+h..+b+a+b?+d+f+b", "g20 c35 "),
    ("(0)?...+f.+b+e..?+a.??+h+d.+b.(0.01)?+f+a+g.?-c+b+e+a-e+f.+h(0.1).-a??.+f-g+d", ""),
    ("+a+f-c+g+e.+b?+g-h+c?+d+h?.+h?(0.1)+g+a+f+g.-c.-e?+h.+a.+c+f+h+g+g+e+c?-c?.+e.", "a5 b20 d30 "),
    ("+a.?(0)?-h(0.1)+g+e+g+b+g+a+f+g.+c+h?..(0.1)?-d.+e+c+h.-b+f+h?.??+c??+a?+a.-a+h", "a5 e20 a30 "),
    ("+h+e+b??+g??-f.?+e+f+g+g+b?+e-c+c+f+e+c+h.+h+d.+a?+a?????+g.+e(0.1)?+g+f+h+c", "h0 g15 "),
]  # fmt: skip
"""What ``RateLimitedTimedQueue`` of v1.36.3 did in virtual time, from a rate of 0.1: ``+a`` remove and add a node,
``-a`` remove it, ``.`` let five seconds pass, ``(0.01)`` ``SwapLimiter``, ``?`` ``Try``; and the nodes that were taken,
with the seconds."""


@pytest.mark.parametrize(("steps", "taken"), REAL)
def test_as_the_real_queue(steps: str, taken: str) -> None:
    """The order of nodes that were added in the same instant included."""
    now_ns = 0
    queue = taint_queues.TaintQueue(0.1, now_ns)
    found = ""
    for step in re.findall(r"\+.|-.|\.|\?|\([0-9.]+\)", steps):
        if step[0] in "+-":
            queue.remove(step[1])
            if step[0] == "+":
                queue.add(step[1], now_ns)
        elif step == ".":
            now_ns += 5 * SECOND_NS
        elif step == "?":
            while (name := queue.take(now_ns)) is not None:
                found += f"{name}{now_ns // SECOND_NS} "
        else:
            queue.set_rate(float(step[1:-1]), now_ns)
    assert found == taken


def node(name: str, ready: str, heard_s: int) -> node_health.NodeView:
    return node_health.NodeView(name, "", {"Ready": ready}, heard_s * SECOND_NS, heard_s * SECOND_NS, ())


def test_a_node_found_lost_queues_up_behind_those_that_wait() -> None:
    """Writing that a node is lost takes a moment, in which the others, in whatever order, are put into the queue."""
    health = node_health.NodeLifecycle(node_health.Settings())
    well = [f"well{number}" for number in range(6)]
    nodes = {name: node(name, "True", 0) for name in ("n1", "n2", "n3", *well)}

    def look(at_s: int) -> list[str]:
        """The nodes that a look finds lost."""
        nodes.update((name, node(name, "True", at_s)) for name in well)
        changes = health.monitor(at_s * SECOND_NS, list(nodes.values()))
        lost = [change.name for change in changes if change.unknown]
        for name in lost:
            nodes[name] = node(name, "Unknown", 0)
        return lost

    def taint(at_s: float) -> list[str]:
        changes = health.taint_next(int(at_s * SECOND_NS), nodes.get)
        for change in changes:
            nodes[change.name] = dataclasses.replace(nodes[change.name], taints=change.add)
        return [change.name for change in changes]

    look(0)
    look(5)
    nodes["n1"] = node("n1", "True", 10)
    look(10)
    assert look(45) == ["n2", "n3"]
    assert taint(45.1) == ["n2"]
    assert look(50) == []
    # n1 is found in the look just before the next token comes: it stands first in the list, and comes last.
    assert look(55) == ["n1"]
    assert taint(55.2) == ["n3"]
    assert look(60) == []
    assert taint(65.3) == ["n1"]


def test_nodes_and_zones_that_are_gone_leave_nothing_behind() -> None:
    health = node_health.NodeLifecycle(node_health.Settings())
    for number in range(200):
        name, zone, at_s = f"n{number}", f"z{number}", number * 100
        view = node_health.NodeView(name, zone, {"Ready": "Unknown"}, 0, 0, ())
        keep = node("keep", "True", at_s)
        health.monitor(at_s * SECOND_NS, [view, keep])
        assert [change.name for change in health.taint_next((at_s + 1) * SECOND_NS, {name: view}.get)] == [name]
    health.monitor(30_000 * SECOND_NS, [node("keep", "True", 30_000)])
    assert list(health._zones) == [""]
    assert list(health._health) == ["keep"]


def test_a_node_that_is_gone_uses_up_its_turn_and_is_forgotten() -> None:
    queue = taint_queues.TaintQueue(0.1, 0)
    for name in ("a", "b"):
        queue.add(name, 0)
    queue.forget("a")
    assert queue.take(0) == "a"
    queue.forget("a")
    assert "a" not in queue
    assert queue.take(5 * SECOND_NS) is None
    assert queue.take(10 * SECOND_NS) == "b"
    assert "b" in queue
