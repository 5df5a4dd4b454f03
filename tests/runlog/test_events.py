"""Events of the run log: every event of shipped scenarios is of its declared class, and no kind is named elsewhere."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import kemu
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.runtime.runlog.events import BY_KIND, ActorStarted, Event, FaultBegun, field, own, typed
from kemu.runtime.runlog.frames import FILE_NAME, Reader

pytestmark = pytest.mark.slow

TRIES = [name for name in catalog.shipped() if not name.startswith(("traces/", "scale/"))][::12]


class Answered(Event, kind="test.answered", by="nothing"):
    """For these tests."""

    source: str = field(key="from")
    count: int
    why: str = ""


def is_of(value: Any, said: str) -> bool:
    """Whether a value of the log is of an annotated type, as far as its outermost class goes."""
    kinds = {
        "str": str, "int": int, "float": (int, float), "bool": bool, "bytes": bytes, "None": type(None),
        "list": list, "dict": dict, "tuple": list,
    }  # fmt: skip
    names = [one.strip().partition("[")[0] for one in said.split("|")]
    return any(isinstance(value, kinds[name]) and (name == "bool" or value.__class__ is not bool) for name in names)


@pytest.mark.parametrize("name", TRIES)
def test_every_event_of_a_run_is_of_its_class(name: str, tmp_path: Path) -> None:
    runner.run_all(loader.load(catalog.shipped()[name]), runner.Options(out=tmp_path, runtime="sim"))
    for log in sorted(tmp_path.rglob(FILE_NAME)):
        with Reader(log) as reader:
            for time_ns, _, kind, data in reader:
                declared = BY_KIND.get(kind)
                if declared is None:
                    assert kind == "scale-down.removed", f"{kind} at {time_ns} is not declared"
                    continue
                fields = declared.FIELDS.values()
                known = [one.key for one in fields if one.key in data]
                if declared is not FaultBegun:
                    assert list(data) == known, kind
                missing = [one.key for one in fields if not one.is_optional and one.key not in data]
                assert not missing, kind
                event = typed(kind, data)
                assert event == data
                for one in fields:
                    value = getattr(event, one.name)
                    assert one.key not in data or is_of(value, one.type), f"{kind}: {one.name} = {value!r}"


def test_an_event_is_the_dict_that_stands_in_the_log() -> None:
    event = Answered(source="a", count=2)
    assert dict(event) == {"from": "a", "count": 2}
    assert (event.source, event.count, event.why, event.KIND) == ("a", 2, "", "test.answered")
    again = pickle.loads(pickle.dumps(event))
    assert (type(again), again) == (Answered, event)


def test_what_is_not_declared_is_read_all_the_same() -> None:
    later = typed("actor.started", {"incarnation": 1, "of_a_later_version": True})
    assert isinstance(later, ActorStarted)
    assert later.incarnation == 1
    unknown = typed("kind.of_a_later_version", {"a": 1})
    assert (unknown.KIND, unknown["a"]) == ("kind.of_a_later_version", 1)
    assert pickle.loads(pickle.dumps(own("mine", {"a": 1}))).KIND == "mine"


def test_a_kind_is_named_where_it_is_declared() -> None:
    """Others name the class, whose fields mypy knows."""
    package = Path(kemu.__file__).parent
    quoted = re.compile(rf"[\"']({'|'.join(map(re.escape, BY_KIND))})[\"']")  # to parse all of the source takes seconds
    named = [
        f"{path.relative_to(package)}:{node.lineno} {node.value}"
        for path in sorted(package.rglob("*.py"))
        if "runlog/events" not in path.as_posix() and not path.stem.endswith(("_pb2", "_pb2_grpc"))
        if quoted.search(text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in BY_KIND
    ]
    assert not named


_OF_SCENARIOS = ("user.py", "small_clusters.py", "clouds.py")
"""Modules whose events are those of scenarios and cases."""
UNTYPED = 40
"""Reads of fields by name that are left, of events of several kinds."""


def test_fields_are_read_as_attributes() -> None:
    """Their types are known to mypy then. Lower the number where one goes."""
    package = Path(kemu.__file__).parent
    keys = {one.key for event in BY_KIND.values() for one in event.FIELDS.values()}
    found = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text()
        if "kemu.runtime.runlog" not in text or "runlog/events" in path.as_posix() or path.name in _OF_SCENARIOS:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Subscript):
                of, key = node.value, node.slice
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "get"
                and node.args
            ):
                of, key = node.func.value, node.args[0]
            else:
                continue
            name = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
            if name in ("data", "event") and isinstance(key, ast.Constant) and key.value in keys:
                found.append(f"{path.relative_to(package)}:{node.lineno} {key.value}")
    assert len(found) <= UNTYPED, "\n".join(found)


def test_a_kind_is_declared_once() -> None:
    with pytest.raises(TypeError, match="declared twice"):

        class Other(Event, kind="test.answered"):
            pass
