"""The index of a run log: the trace of a pod is the same with it, without it, and after it was damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli.main import main
from kemu.lab.telemetry import indexes, runs, waterfall
from kemu.lab.telemetry.builder import SpanBuilder
from kemu.lab.telemetry.spans import Span
from kemu.runtime.runlog.folders import INDEX_FILE
from kemu.runtime.runlog.frames import FILE_NAME, Reader, Writer

MIXED = """\
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: mixed}
spec:
  duration: 90s
  nodes: [{namePrefix: n, count: 3, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}]
  schedulers: [{name: default-scheduler, replicas: 2, policy: {cooperate: false}}]
  manifests:
    - {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 100}
    - apiVersion: apps/v1
      kind: ReplicaSet
      metadata: {name: web}
      spec:
        replicas: 3
        selector: {matchLabels: {a: b}}
        template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
  workloads:
    - name: low
      arrivals: {every: 1s, until: 20s}
      replaceFinished: true
      pods: {spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
      life: {runSeconds: 25}
    - name: high
      start: 10s
      arrivals: {count: 3}
      pods: {spec: {priorityClassName: high, containers: [{name: main, resources: {requests: {cpu: "3"}}}]}}
  events:
    - {at: 5s, create: {apiVersion: v1, kind: Pod, metadata: {name: again}, spec: {containers: [{name: main}]}}}
    - {at: 15s, delete: {pod: again}}
    - {at: 60s, create: {apiVersion: v1, kind: Pod, metadata: {name: again}, spec: {containers: [{name: main}]}}}
  chaos:
    - {at: 30s, crash: {actor: kubelet/n1}, for: 5s}
"""


def run(scenario: str, folder: Path) -> Path:
    main(["run", scenario, "--out", str(folder), "--json"])
    return folder


@pytest.fixture(scope="module", params=["mixed", "races/two-schedulers-one-node", "races/replica-set-expectations"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("index")
    scenario = request.param
    if scenario == "mixed":
        (place / "mixed.yaml").write_text(MIXED)
        scenario = str(place / "mixed.yaml")
    return run(scenario, place / "run")


def by_reading_all(folder: Path) -> dict[str, list[Span]]:
    found: dict[str, list[Span]] = {}
    with Reader(folder / FILE_NAME) as reader:
        for finished in SpanBuilder(runs.of_header(reader.header)).of_log(reader):
            for span in finished:
                found.setdefault(span.uid, []).append(span)
    return found


def by_index(folder: Path, uids: list[str]) -> list[Span]:
    with Reader(folder / FILE_NAME) as reader:
        return indexes.of(folder, reader).spans(reader, uids)


def test_every_trace_is_that_of_the_whole_log(folder: Path) -> None:
    whole = by_reading_all(folder)
    assert whole
    for uid, spans in whole.items():
        assert by_index(folder, [uid]) == spans


def test_a_run_leaves_the_index_that_its_log_gives(folder: Path) -> None:
    left = (folder / INDEX_FILE).read_bytes()
    (folder / INDEX_FILE).unlink()
    with Reader(folder / FILE_NAME) as reader:
        indexes.of(folder, reader)
    assert (folder / INDEX_FILE).read_bytes() == left


def read_log(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where events are read one after the other, that is, when an index is made."""
    made: list[int] = []
    add = indexes.Index.add

    def counting(self: indexes.Index, offset: int, *event: Any) -> None:
        made.append(offset)
        add(self, offset, *event)

    monkeypatch.setattr(indexes.Index, "add", counting)
    return made


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:],
        lambda data: data.replace(b"kemu-run-index/2", b"kemu-run-index/9"),
    ],
)
def test_a_damaged_index_is_made_again(damage: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = folder / INDEX_FILE
    intact = file.read_bytes()
    made = read_log(monkeypatch)
    file.write_bytes(damage(intact))
    uid, spans = next(iter(by_reading_all(folder).items()))
    assert by_index(folder, [uid]) == spans
    assert made
    assert file.read_bytes() == intact
    made.clear()
    assert by_index(folder, [uid]) == spans
    assert not made


def test_an_index_of_another_log_is_made_again(folder: Path, tmp_path: Path) -> None:
    """Of one that goes on: the same frames, and one more."""
    with Reader(folder / FILE_NAME) as reader:
        events = list(reader)
        header = reader.header
    (tmp_path / INDEX_FILE).write_bytes((folder / INDEX_FILE).read_bytes())
    writer = Writer(tmp_path / FILE_NAME, header)
    for event in events:
        writer.append(*event)
    first = next(event for event in events if event.kind == "api.request" and event.data["resource"] == "pods")
    later = events[-1].time_ns + 5
    writer.append(later, "apiserver/0", "api.request", {**first.data, "verb": "delete", "start": later})
    writer.close()
    uid = first.data["uid"]
    assert by_index(tmp_path, [uid]) == by_reading_all(tmp_path)[uid]
    assert by_index(tmp_path, [uid])[-1] != by_index(folder, [uid])[-1]


def test_where_the_folder_cannot_be_written_to_it_is_made_each_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> None:
        raise PermissionError(13, "Permission denied")

    file = folder / INDEX_FILE
    intact = file.read_bytes()
    file.unlink()
    monkeypatch.setattr("os.replace", refuse)
    uid, spans = next(iter(by_reading_all(folder).items()))
    assert by_index(folder, [uid]) == spans
    assert not file.exists()
    assert not list(folder.glob("*.part"))
    file.write_bytes(intact)


def test_an_index_changes_no_digest(folder: Path) -> None:
    assert main(["replay", str(folder)]) == 0


def test_replicas_have_names(tmp_path: Path) -> None:
    scenario = tmp_path / "mixed.yaml"
    scenario.write_text(MIXED)
    trace = waterfall.load(run(str(scenario), tmp_path / "run"), "high-0")
    text = "\n".join(line.plain for line in waterfall.render(trace, "run", 120))
    assert "default-scheduler/0" in text or "default-scheduler/1" in text
    assert " scheduler " not in text
