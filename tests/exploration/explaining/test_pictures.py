"""What the terminal and the run folder show."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from kemu.doors.cli.main import main
from kemu.lab.scenario.loading import loader
from kemu.lab.tell.explaining import diagrams, explanations, reports
from kemu.lab.tell.explaining.diagrams import Diagram
from kemu.lab.tell.explaining.drawings import svgs, texts
from kemu.lab.tell.explaining.explanations import Explanation
from kemu.lab.tell.explaining.names import Names
from kemu.runtime.runlog.frames import Entry
from tests.exploration.explaining import races

PICTURE = """\
  time/s scheduler red API server      scheduler blue    kubelet node-1
  5.304   │                 │                 ● blue-pod → node-1
  5.305   │                 ◄─ bind blue-pod ─┤                 │
≠ 5.307   │ blue-pod bound┄┄┤                 │                 │
  5.308   │                 ├───────── blue-pod bound ──────────►
          │                 │                 │                 ● runs blue-pod
  6.004   ● red-pod → node-1│                 │                 │
          ◄ blue-pod bound ═╡                 │                 │
  6.005   ├─ bind red-pod ──►                 │                 │
  6.008   │                 ├────────── red-pod bound ──────────►
          │                 │                 │                 ✗ rejects red-p…"""
PASSING = """\
≠         ◄ blue-pod bound ─┤                 │                 │
          │                 │                 │                 ● runs blue-pod
  6.004   ● red-pod → node-2│                 │                 │"""


@pytest.fixture(scope="module")
def stale() -> Explanation:
    return explanations.explain(loader.loads(races.STALE))


def test_actors_are_columns_and_time_goes_down(stale: Explanation) -> None:
    failing, passing = stale.diagrams
    assert "\n".join(texts.picture(failing)) == PICTURE
    assert passing is not None
    assert PASSING in "\n".join(texts.picture(passing))


def test_no_line_is_wider_than_the_terminal(stale: Explanation) -> None:
    for width in (80, 100, 120):
        assert max(len(line) for line in texts.told(stale, width).splitlines()) <= width


def test_the_first_difference_is_marked_once_in_each_run(stale: Explanation) -> None:
    for explanation in (stale, explanations.explain(loader.loads(races.TWICE), "pod-bound-at-most-once")):
        for diagram in explanation.diagrams:
            assert diagram is not None
            assert sum(item.differs for item in (*diagram.marks, *diagram.arrows)) == 1


def test_at_most_five_actors(stale: Explanation) -> None:
    assert stale.diagrams[0].actors == ("scheduler/red/0", "apiserver/0", "scheduler/blue/0", "kubelet/node-1")


def test_a_picture_of_many_late_messages_fits_a_screen() -> None:
    """Also where there is nothing else: of the passing run all messages may be late, and no actor does anything."""
    late = [
        diagrams.Arrow(time, time, time + 1, 0, 1, f"pod-{time} bound", 1_000 - time, True, ("message", str(time)))
        for time in range(2 * diagrams.MOST_MARKS)
    ]
    diagram = diagrams.Diagram(("a", "b"), ("a", "b"), [], list(late))
    diagrams.thin(diagram)
    assert diagram.arrows == late[: diagrams.MOST_MARKS], "the least late ones go"
    marks = [diagrams.Mark(time, time, 0, "tries", False, time, (str(time),)) for time in range(diagrams.MOST_MARKS)]
    diagram = diagrams.Diagram(("a", "b"), ("a", "b"), list(marks), list(late))
    diagrams.thin(diagram)
    assert diagram.arrows == late[: diagrams.MOST_MARKS // 2]
    assert diagram.marks == marks[diagrams.MOST_MARKS // 2 :]


def test_the_svg_stands_alone(stale: Explanation) -> None:
    text = svgs.drawn(stale)
    root = ET.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert not re.search(r"<script|href=|url\(http|@import", text)
    assert "prefers-color-scheme: dark" in text
    words = "".join(root.itertext())
    for one in stale.chain.sentences:
        assert one.text[:60] in words


def test_the_command_leaves_its_files_in_the_run_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "stale.yaml"
    file.write_text(races.STALE)
    folder = tmp_path / "run"
    assert main(["run", str(file), "--out", str(folder), "--json"]) == 1
    capsys.readouterr()
    assert main(["explain", str(folder), "--width", "80"]) == 1
    printed = capsys.readouterr().out
    assert PICTURE in printed
    # The same, but the sentences stand at the end, which is what a small terminal shows.
    sentences, pictures = (folder / reports.TEXT).read_text().split("\n\nThis run: ")
    assert f"{pictures.rstrip()}\n\n{sentences}\n" in printed
    data = json.loads((folder / reports.DATA).read_text())
    assert data["failure"]["id"] == "all-run"
    assert [one["hold"] for one in data["sentences"]] == [None, 0, None, None, None]
    assert data["sibling"]["without"] == {"kind": "hold", "name": "0"}
    assert data["sibling"]["first_difference"]["time_s"] == 5.308
    # Another run in the same folder takes the explanation of the older one away.
    assert main(["run", str(file), "--out", str(folder), "--json"]) == 1
    assert not (folder / reports.TEXT).exists()


def test_a_file_is_explained_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "twice.yaml"
    file.write_text(races.TWICE)
    command = ["explain", str(file), "--failure", "pod-bound-at-most-once", "--out", str(tmp_path / "out"), "--json"]
    assert main(command) == 1
    assert json.loads(capsys.readouterr().out)["sentences"][0]["event"] is None
    assert (tmp_path / "out" / reports.PICTURE).is_file()
    file.write_text(
        "apiVersion: kemu.dev/v1\nkind: Scenario\nmetadata: {name: idle}\nspec: {nodes: [{name: node-1}]}\n"
    )
    assert main(["explain", str(file), "--out", str(tmp_path / "no")]) == 2
    assert "nothing to explain" in capsys.readouterr().err


def test_a_message_that_is_late_differs_where_it_left() -> None:
    failing, passing = explanations.explain(loader.loads(races.RECREATED)).diagrams
    assert passing is not None
    (late,) = [arrow for arrow in failing.arrows if arrow.late_ns]
    assert late.differs
    (usual,) = [item for item in (*passing.marks, *passing.arrows) if item.differs]
    assert usual.sign == late.sign


def test_columns_are_named_as_their_actors() -> None:
    actors = ("scheduler/a/0", "scheduler/a/1", "controller/replicaset")
    names = Names([Entry(0, actor, "actor.started", {}) for actor in actors])
    assert [names.column(actor) for actor in actors] == ["replica 0", "replica 1", "controller replicaset"]


def test_titles_of_panels_and_boxes_of_actors_do_not_overlap() -> None:
    lines = Diagram(("a", "b"), ("scheduler default-scheduler", "API server"))
    first = svgs.Panel(lines, "This run: voluntary-evictions-respect-budgets fails", "bad", "")
    drawn = ET.fromstring(svgs.page("why", [first, svgs.Panel(lines, "Without the fault", "good", "")], []))
    boxes = [
        (float(each.get("x", "")), float(each.get("width", "")))
        for each in drawn.iter("{http://www.w3.org/2000/svg}rect")
        if each.get("class") == "box"
    ]
    assert boxes[0][0] >= 0
    assert all(left + width < right for (left, width), (right, _) in pairwise(boxes))
    heads = [each for each in drawn.iter("{http://www.w3.org/2000/svg}text") if "head" in each.get("class", "")]
    assert float(heads[1].get("x", "")) - float(heads[0].get("x", "")) > 8 * len(heads[0].text or "")
