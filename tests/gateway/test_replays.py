"""Exchanges recorded with a real kube-apiserver, replayed: the sample in CI takes seconds, all of them run at night."""

from __future__ import annotations

import pytest

from tests.gateway.replays import differences, recordings, replays, shapes, wires
from tests.gateway.replays.identities import Identities
from tests.gateway.replays.recordings import Record

NEEDED = pytest.mark.skipif(
    not recordings.SHARED.exists(), reason=f"not beside the project: the recorded exchanges ({recordings.SHARED})"
)
#: The recorder's last run, and complete documents: probes of every refusal, KWOK with leases, kubectl with faults.
SAMPLE = range(2345, 2934)
LEAST = 0.98


def _compare(records: list[Record]) -> tuple[int, int]:
    """Compared and alike."""
    outcomes = replays.run(records)
    differing = {outcome.record.number: outcome for outcome in outcomes if outcome.differences}
    compared = [outcome for outcome in outcomes if not outcome.left_out]
    argued = differences.argued()
    unknown = {number: outcome.differences for number, outcome in differing.items() if number not in argued}
    assert not unknown, unknown
    numbers = {outcome.record.number for outcome in compared}
    stale = [number for number in argued if number in numbers and number not in differing]
    assert not stale, f"these do not differ any more: {stale}"
    return len(compared), len(compared) - len(differing)


@NEEDED
def test_a_sample_of_recorded_exchanges_is_answered_alike() -> None:
    compared, alike = _compare([record for record in recordings.load() if record.number in SAMPLE])
    assert compared > 500
    assert alike / compared >= LEAST


@NEEDED
@pytest.mark.nightly("thousands of them; a sample runs always")
def test_all_recorded_exchanges_are_answered_alike() -> None:
    compared, alike = _compare(recordings.load())
    assert compared > 2600
    assert alike / compared >= LEAST


def test_a_difference_is_seen() -> None:
    """The comparison can fail: another key, reason, cause, column, type of a cell."""
    status = {"kind": "Status", "reason": "NotFound", "code": 404, "details": {"name": "a", "kind": "pods"}}
    for change in ({"reason": "Gone"}, {"details": {"name": "b", "kind": "pods"}}, {"message": "more"}):
        assert shapes.of_documents(wires.Document(status), wires.Document({**status, **change}))
    assert not shapes.of_documents(wires.Document(status), wires.Document(dict(status)))
    column = {"name": "Age", "type": "string", "format": "", "priority": 0}
    table = {"kind": "Table", "columnDefinitions": [column], "rows": [{"cells": ["1s"], "object": {}}]}
    other = {**table, "columnDefinitions": [{**column, "priority": 1}]}
    assert shapes.of_documents(wires.Document(table), wires.Document(other))
    assert shapes.of_documents(wires.Document(table), wires.Document({**table, "rows": [{"cells": [1], "object": {}}]}))


def test_of_json_that_is_cut_off_the_beginning_counts() -> None:
    whole = '{"a":{"b":1,"c":[{"d":"}"},{"e":2}]},"f":3}'
    document = wires.recorded_answer(whole[:33] + "...<+10>")
    assert document.prefix == whole[:33]
    assert shapes.keys(wires.beginning(document.prefix)) == {".a", ".a.b", ".a.c", ".a.c[].d"}
    assert shapes.of_documents(document, wires.Document({"a": {"b": 1, "c": []}}))
    assert not shapes.of_documents(document, wires.Document({"a": {"b": 1, "c": [{"d": 1}]}, "more": 1}))


def test_versions_and_uids_of_the_recording_become_those_of_here() -> None:
    identities = Identities()
    uid, here = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
    identities.learn(
        {"metadata": {"uid": uid, "resourceVersion": "100"}}, {"metadata": {"uid": here, "resourceVersion": "7"}}
    )
    assert identities.in_query(f"fieldSelector=involvedObject.uid%3D{uid}&resourceVersion=105") == (
        f"fieldSelector=involvedObject.uid%3D{here}&resourceVersion=7"
    )
    assert identities.in_text('{"metadata":{"resourceVersion":"1"}}') == '{"metadata":{"resourceVersion":"1"}}'
