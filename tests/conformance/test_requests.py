"""Every recorded request is answered by kemu's gateway as by a real kube-apiserver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.apiserver.registry import options
from kemu.emulated.gateway import app
from kemu.emulated.gateway.answers import refusals
from kemu.emulated.gateway.requests import delete_options, negotiation, request_infos, routes
from kemu.emulated.gateway.verbs import reads, reviews
from kemu.emulated.objects import selectors
from kemu.emulated.objects.conversion import go_syntax
from kemu.lab.conformance import agreements, case_files, registry
from kemu.lab.conformance.requests import results
from kemu.lab.conformance.requests.exchanges import Answer
from tests.conformance.generators import requests

FILE = Path(__file__).parent / "data" / "requests" / "requests.jsonl.gz"
KIND = registry.kind("requests")


def test_every_case_agrees() -> None:
    found = agreements.judge(KIND, case_files.read(FILE))
    assert found.total >= 200
    assert {one.id: one.differences for one in found.disagreements} == {}


def test_the_cases_are_those_of_the_generator() -> None:
    for case in list(case_files.read(FILE))[:5]:
        _, seed, number = case.id.split("-")
        assert requests.case("requests", int(seed[1:]), int(number)) == case.question


def test_an_answer_is_the_same_again() -> None:
    for case in list(case_files.read(FILE))[:10]:
        assert KIND.answer(case.question) == KIND.answer(case.question)


def test_what_is_compared_of_an_answer() -> None:
    uid, time = "0c6fb4ac-3b4e-4b5c-9d0e-0123456789ab", "2026-01-01T00:00:00Z"
    body = (
        f'{{"metadata":{{"uid":"{uid}","resourceVersion":"7","creationTimestamp":"{time}","continue":""}},'
        f'"message":"Too large resource version: 9, current: 7"}}'
    ).encode()
    headers = [("content-type", "application/json"), ("audit-id", uid), ("warning", '299 - "a"'), ("warning", "b")]
    assert results.of_answer({"path": "/api/v1/pods"}, Answer(504, headers, body)) == {
        "code": 504,
        "type": "application/json",
        "headers": {"warning": ['299 - "a"', "b"]},
        "body": {
            "metadata": {
                "uid": "a UID",
                "resourceVersion": "is set",
                "creationTimestamp": "a time",
                "continue": "",
            },
            "message": "Too large resource version: , current: ",
        },
    }
    events = b'{"type":"ADDED","object":{"metadata":{}}}\n{"type":"BOOKMARK","object":{"metadata":{}}}\n'
    found = results.of_answer({"path": "/api/v1/pods"}, Answer(200, headers[:1], events))
    assert found["body"] == {"events": [{"type": "ADDED", "object": {"metadata": {}}}]}


def _anything(*given: Any, **named: Any) -> None:
    pass


BUGS: list[tuple[Any, str, Any]] = [
    (routes, "check", _anything),
    (delete_options, "check", _anything),
    (delete_options, "_check_kind", _anything),
    (negotiation, "is_human", lambda pretty, agent: False),
    (reads, "check_syntax", _anything),
    (refusals, "is_unauthorized", lambda request, status: False),
    (request_infos, "_verb", lambda method, parts, query: method.lower()),
    (reviews, "_manage", _anything),
    (options, "check_list", _anything),
    (selectors, "_check_requirement", _anything),
    (go_syntax, "problem", lambda data: ""),
    (app, "DEPRECATED", {}),
]


@pytest.mark.parametrize(("module", "name", "bug"), BUGS, ids=[f"{bug[0].__name__}.{bug[1]}" for bug in BUGS])
def test_a_bug_is_noticed(module: Any, name: str, bug: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, name, bug)
    assert any(KIND.judged(case.question, case.expect)[1] for case in case_files.read(FILE))
