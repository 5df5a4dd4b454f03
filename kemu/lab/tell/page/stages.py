"""The space-time picture of the first screen: actors as lanes, time downward, row by row.

It is made from what ``kemu explain`` writes as ``explanation.json``. What the passing run did instead is shown as
ghosts: items that this run has not, from the first difference on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MOST_ROWS = 20
MOST_GHOSTS = 6
MOST_NODES = 4

Item = dict[str, Any]


def of(explanation: Mapping[str, Any]) -> dict[str, Any]:
    """``lanes``, and ``items`` with their rows: marks have ``lane``, messages ``from``, ``to`` and ``sent_row``."""
    failing, passing = explanation["picture"]["failing"], explanation["picture"]["passing"]
    lanes = failing["actors"]
    ours = list(_items(failing, lanes))
    theirs = list(_items(passing, lanes)) if passing is not None else []
    known = [_sign(one) for one in ours]
    first = next((index for index, one in enumerate(theirs) if one["differs"]), len(theirs))
    ghosts = [{**one, "ghost": True} for one in theirs[first:] if _sign(one) not in known]
    if ours:
        _losing(ours)["losing"] = True
    ours = _folded(ours)[-MOST_ROWS:]
    ghosts = [one for one in ghosts if ours and one["time"] >= ours[0]["time"]][:MOST_GHOSTS]
    ghosts = _folded(ghosts)
    items = sorted([*ours, *ghosts], key=lambda one: one["time"])
    used = sorted({one[name] for one in items for name in ("lane", "from", "to") if name in one})
    for one in items:
        one |= {name: used.index(one[name]) for name in ("lane", "from", "to") if name in one}
    titles = [failing.get("titles", lanes)[index] for index in used]
    if len(titles) == 1:
        titles += _choices(items)
    for row, one in enumerate(items):
        one["row"] = row
    for one in items:
        # The departure of a message that took long: beside what happened then.
        sent = one.get("sent", one["time"])
        one["sent_row"] = next(other["row"] for other in items if other["time"] >= sent or other is one)
    return {
        "lanes": titles,
        "rows": len(items),
        "items": items,
        "without": _without(explanation) if ghosts else "",
    }


def _losing(items: list[Item]) -> Item:
    """The last mark that is bad, unless the runs part at a later one; else where they part; else the end."""
    marks = [one for one in items if one["kind"] == "mark"] or items
    parting = next((one for one in marks if one["differs"]), None)
    after = marks[marks.index(parting) :] if parting is not None else marks
    return next((one for one in reversed(after) if one.get("bad")), parting or marks[-1])


def _choices(items: list[Item]) -> list[str]:
    """The picture of one scheduler: what it chose becomes an arrow to the node. Returns the nodes, as further lanes."""
    nodes: dict[str, int] = {}
    for item in items:
        pod, arrow, node = item["text"].partition(" → ")
        if arrow and item["kind"] == "mark" and (node in nodes or len(nodes) < MOST_NODES):
            lane = nodes.setdefault(node, len(nodes) + 1)
            more = {"kind": "message", "from": 0, "to": lane, "sent": item["time"], "lost": False, "held": 0}
            item |= {**more, "text": pod}
            del item["lane"]
    return list(nodes)


def _folded(items: list[Item]) -> list[Item]:
    """What an actor does to several pods in a row is one row."""
    folded: list[list[Item]] = []
    for item in items:
        if folded and item["kind"] == "mark" and _sort(item) == _sort(folded[-1][-1]):
            folded[-1].append(item)
        else:
            folded.append([item])
    found = []
    for group in folded:
        more = len(group) - 1
        lost = next((one for one in group if one.get("losing")), group[0])
        found.append({**lost, "text": f"{lost['text']} +{more}" if more else lost["text"]})
    return found


def _sort(item: Item) -> tuple[Any, ...]:
    if item["kind"] != "mark":
        return ("message",)
    return item["lane"], item["bad"], item["differs"], item["text"].partition(" ")[0], "→" in item["text"]


def _without(explanation: Mapping[str, Any]) -> str:
    sibling = explanation["sibling"]
    if sibling is None:
        return ""
    kind, name = sibling["without"]["kind"], sibling["without"]["name"]
    return f"variant {name}" if kind == "variant" else f"without the {kind} {name}".removesuffix(" 0")


def _items(picture: Mapping[str, Any], lanes: list[str]) -> Iterator[Item]:
    """Marks, and messages at their arrival (those that never arrive, when they were sent), in the order of time."""
    found: list[tuple[float, int, Item]] = []
    for mark in picture["marks"]:
        item = {
            "kind": "mark",
            "time": _micros(mark["time_s"]),
            "lane": lanes.index(mark["actor"]),
            "text": mark["text"],
            "event": mark["event"],
            "bad": mark.get("bad", False),
            "differs": mark["differs"],
        }
        found.append((item["time"], 1, item))
    for message in picture["messages"]:
        arrived = message["arrived_s"]
        item = {
            "kind": "message",
            "time": _micros(message["sent_s"] if arrived is None else arrived),
            "sent": _micros(message["sent_s"]),
            "from": lanes.index(message["from"]),
            "to": lanes.index(message["to"]),
            "text": message["text"],
            "lost": arrived is None,
            "held": _micros(message["held_s"]),
            "differs": message["differs"],
        }
        found.append((item["time"], 2 if item["held"] else 0, item))
    for _, _, item in sorted(found, key=lambda one: one[:2]):
        yield item


def _sign(item: Item) -> tuple[Any, ...]:
    return tuple(item.get(name) for name in ("kind", "time", "lane", "from", "to", "text"))


def _micros(seconds: float) -> int:
    return round(seconds * 1e6)
