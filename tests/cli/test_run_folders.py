"""Run folders: nothing of the user's is lost, nothing of an older run is left, what is damaged is called so."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import msgpack
import pytest

from kemu.doors.cli.main import main
from kemu.lab.scenario import catalog
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.blocks import PLAIN_MAGIC as MAGIC
from kemu.runtime.runlog.frames import Entry, Reader, Writer

RACE = "races/two-schedulers-one-node"
NODES = "apiVersion: kemu.dev/v1\nkind: Scenario\nmetadata: {name: small}\nspec:\n  nodes: [{name: n1}]\n"


@pytest.mark.parametrize("name", ["scenario.yaml", "run.kemu", "verdict.json", "cells"])
def test_a_file_that_no_run_has_made_is_not_replaced(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text("mine")
    assert main(["run", RACE, "--out", str(tmp_path)]) == 2
    assert f"{tmp_path} is no run folder, but has a {name}" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_run_does_not_replace_its_own_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(NODES + "  # a comment\n")
    assert main(["run", str(scenario), "--out", str(tmp_path)]) == 2
    assert "the run would replace its own scenario" in capsys.readouterr().err
    assert scenario.read_text().endswith("# a comment\n")
    run = tmp_path / "run"
    assert main(["run", str(scenario), "--out", str(run)]) == 0
    assert main(["run", str(run / "scenario.yaml"), "--out", str(run)]) == 2


def test_of_an_older_run_nothing_is_left_but_what_the_user_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    single, double, triple = (tmp_path / f"{name}.yaml" for name in ("single", "double", "triple"))
    single.write_text(NODES)
    double.write_text(NODES + "  matrix: {seed: [1, 2]}\n")
    triple.write_text(NODES + "  matrix: {seed: [1, 2, 3]}\n")
    out = tmp_path / "out"
    for scenario, runs in ((single, 1), (triple, 3), (double, 2), (single, 1)):
        assert main(["run", str(scenario), "--out", str(out), "--force"]) == 0
        (out / "notes.txt").write_text("mine")
        capsys.readouterr()
        assert main(["replay", str(out)]) == 0
        assert capsys.readouterr().out.count(": the same") == runs
        assert (out / "run.kemu").exists() == (runs == 1)
    assert sorted(path.name for path in out.iterdir()) == [
        "notes.txt",
        "run.kemu",
        "run.kemu.index",
        "scenario.yaml",
        "verdict.json",
    ]


def test_another_kind_of_result_is_replaced_only_by_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    single, double, triple = (tmp_path / f"{name}.yaml" for name in ("single", "double", "triple"))
    single.write_text(NODES)
    double.write_text(NODES + "  matrix: {seed: [1, 2]}\n")
    triple.write_text(NODES + "  matrix: {seed: [1, 2, 3]}\n")
    out = tmp_path / "out"
    hint = "choose another folder with --out, or replace them with --force"
    assert main(["run", str(triple), "--out", str(out)]) == 0
    before = sorted(path.relative_to(out).as_posix() for path in out.rglob("*"))
    for scenario in (single, double):
        capsys.readouterr()
        assert main(["run", str(scenario), "--out", str(out)]) == 2
        assert capsys.readouterr().err == f"kemu: {out} holds 3 variants of small: {hint}\n"
    assert main(["explore", str(single), "--out", str(out), "--runs", "1", "--jobs", "1"]) == 2
    assert capsys.readouterr().err == f"kemu: {out} holds 3 variants of small: {hint}\n"
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*")) == before
    assert main(["run", str(triple), "--out", str(out)]) == 0, "the same again"
    assert main(["run", str(single), "--out", str(out), "--force"]) == 0
    assert main(["run", str(single), "--out", str(out)]) == 0, "the same kind again"
    capsys.readouterr()
    assert main(["run", str(double), "--out", str(out)]) == 2
    assert capsys.readouterr().err == f"kemu: {out} holds a run of small: {hint}\n"


def test_a_search_is_replaced_only_by_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario, out = tmp_path / "single.yaml", tmp_path / "out"
    scenario.write_text(NODES)
    main(["explore", str(scenario), "--out", str(out), "--runs", "1", "--jobs", "1"])
    capsys.readouterr()
    assert main(["run", str(scenario), "--out", str(out)]) == 2
    hint = "choose another folder with --out, or replace them with --force"
    assert capsys.readouterr().err == f"kemu: {out} holds a search: {hint}\n"
    assert main(["run", str(scenario), "--out", str(out), "--force"]) == 0
    assert not (out / "campaign.jsonl").exists()


def cut(log: Path, *, after: int, torn: bytes = b"") -> None:
    """The log of a run that was interrupted after so many events, perhaps within one."""
    with Reader(log) as reader:
        header, payloads = reader.header, list(reader.payloads())[:after]
    whole = b"".join(frame(payload) for payload in payloads)
    log.write_bytes(MAGIC + frame(msgpack.packb(header)) + whole + torn)


@pytest.mark.parametrize("torn", [b"", b"\x40\x00\x00\x00half"])
@pytest.mark.filterwarnings("default::kemu.errors.LogCutWarning")
def test_a_run_that_was_interrupted_is_identical_as_far_as_recorded(
    torn: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run", RACE, "--out", str(tmp_path)])
    cut(tmp_path / "run.kemu", after=40, torn=torn)
    (tmp_path / "verdict.json").unlink()
    capsys.readouterr()
    assert main(["replay", str(tmp_path)]) == 0
    text = f"{tmp_path}: identical as far as recorded, 40 events; the run was interrupted\n"
    assert capsys.readouterr().out == text
    assert main(["replay", str(tmp_path), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert (found["same"], found["interrupted"], found["events"]) == (True, True, 40)


def changed(log: Path, kind: str, change: Callable[[Entry], Entry]) -> int:
    """Change the first event of a kind; returns its index."""
    with Reader(log) as reader:
        header, events = reader.header, list(reader)
    index = next(index for index, event in enumerate(events) if event.kind == kind)
    events[index] = change(events[index])
    writer = Writer(log, header)
    for event in events:
        writer.append(*event)
    writer.close()
    return index


def test_a_difference_is_told_as_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", RACE, "--out", str(tmp_path)])
    log = tmp_path / "run.kemu"

    def elsewhere(event: Entry) -> Entry:
        return event._replace(data={**event.data, "node": "node-9", "feasible": 7})

    index = changed(log, "sched.attempt", elsewhere)
    capsys.readouterr()
    assert main(["replay", str(tmp_path)]) == 1
    first, *rest = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"{tmp_path}: event {index} differs: [0-9.]+ s scheduler/(red|blue)/0 sched.attempt", first)
    assert rest == [
        "  node",
        "    recorded: node-9",
        "    replayed: node-1",
        "  feasible",
        "    recorded: 7",
        "    replayed: 1",
    ]


def test_objects_are_told_by_their_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", RACE, "--out", str(tmp_path)])

    def other_namespace(event: Entry) -> Entry:
        op, key, value, *rest = event.data["changes"][0]
        namespace = core_v1_pb2.Namespace.FromString(value)
        namespace.metadata.labels["team"] = "red"
        return event._replace(data={**event.data, "changes": [[op, key, namespace.SerializeToString(), *rest]]})

    changed(tmp_path / "run.kemu", "store.txn", other_namespace)
    capsys.readouterr()
    assert main(["replay", str(tmp_path)]) == 1
    _, *rest = capsys.readouterr().out.splitlines()
    assert rest == [
        "  changes[0].value.metadata.labels.team",
        "    recorded: red",
        "    replayed: (absent)",
    ]


def test_a_run_that_broke_is_the_same_if_it_breaks_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = "from kemu.scheduler.framework import *\nclass Bad(NodeFilterPlugin):\n    def filter(self, pod, node):\n"
    (tmp_path / "breaks_again.py").write_text(f"{plugin}        raise KeyError('nope')\n")
    scenario = tmp_path / "breaks.yaml"
    plugins = "{multiPoint: {enabled: [{name: 'breaks_again:Bad'}]}}"
    profile = f"{{schedulerName: default-scheduler, plugins: {plugins}}}"
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: m}]}}"
    scenario.write_text(
        f"{NODES}  schedulers: [{{name: default-scheduler, config: {{profiles: [{profile}]}}}}]\n"
        f"  events: [{{at: 1s, create: {pod}}}]\n"
    )
    out = tmp_path / "out"
    assert main(["run", str(scenario), "--out", str(out)]) == 4
    capsys.readouterr()
    assert main(["replay", str(out)]) == 0
    text = capsys.readouterr().out
    assert re.match(rf"{out}: the same, [0-9]+ events; it broke as recorded: scheduler/default-scheduler/0 ", text)
    assert text.endswith("ended with KeyError: 'nope'\n")


def test_a_folder_of_another_name_is_no_variant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "variant-x").mkdir()
    for command in (["replay", str(tmp_path)], ["trace", str(tmp_path), "a"]):
        assert main(command) == 2
        assert "not a run folder" in capsys.readouterr().err


def frame(payload: bytes) -> bytes:
    return struct.pack("<II", len(payload), zlib.crc32(payload)) + payload


HEADER = frame(msgpack.packb({"runtime": "sim"}))
LOGS = {
    "another format": (b"kemu-run-log/9\n" + HEADER, "a run log of format 9"),
    "no header": (MAGIC, "ends within a frame"),
    "a header that is a list": (MAGIC + frame(msgpack.packb([1, 2])), "the header is damaged"),
    "a header that is nothing": (MAGIC + frame(b"\xc1"), "the header is damaged"),
    "an event of two parts": (MAGIC + HEADER + frame(msgpack.packb([1, "a"])), "not an event"),
    "an event that is nothing": (MAGIC + HEADER + frame(b"\xc1"), "not an event"),
    "an event of another version": (
        MAGIC + HEADER + frame(msgpack.packb([1, "store", "store.txn", {}])),
        "cannot be understood",
    ),
    "an event with other data": (
        MAGIC + HEADER + frame(msgpack.packb([1, "scheduler/a/0", "sched.attempt", "text"])),
        "not an event of a run",
    ),
}


@pytest.mark.parametrize(("log", "what"), LOGS.values(), ids=list(LOGS))
def test_a_log_that_cannot_be_read_is_called_so(
    log: bytes, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scenario.yaml").write_text(catalog.find(RACE).read_text())
    (tmp_path / "run.kemu").write_bytes(log)
    assert main(["trace", str(tmp_path), "a"]) == 2
    error = capsys.readouterr().err
    assert str(tmp_path / "run.kemu") in error
    assert what in error
    assert main(["replay", str(tmp_path)]) in (1, 2)
