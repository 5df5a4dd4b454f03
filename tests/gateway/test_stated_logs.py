"""What a pod says that its containers print."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kemu.emulated.kubelet.logs import lines as logs
from kemu.emulated.kubelet.logs import stated
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import core_v1_pb2

START_S = 1_000_000


def _pod(annotations: dict[str, str], container: dict[str, Any] | None = None) -> core_v1_pb2.Pod:
    main = {"name": "main", "image": "team/web", **(container or {})}
    status = {"name": "main", "image": "x", "state": {"running": {"startedAt": "1970-01-12T13:46:40Z"}}}
    document = {
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "annotations": annotations},
        "spec": {"nodeName": "n1", "containers": [main]},
        "status": {"containerStatuses": [{**status, "restartCount": 2}]},
    }
    return convert.from_json(core_v1_pb2.Pod, document)


def _said(pod: core_v1_pb2.Pod, until_s: int, *, programs: bool = False) -> list[tuple[int, str]]:
    found = logs.current(pod, pod.spec.containers[0], programs=programs)
    assert found is not None
    return [(at_s - START_S, text) for at_s, text in found.lines(0, START_S + until_s)]


def test_lines_have_times_and_names() -> None:
    lines = [
        "{pod} of {namespace} on {node}: {container}, restart {restarts}",
        {"at": "5s", "line": "warm {unknown}"},
        {"every": "10s", "from": "4s", "line": "tick {n}"},
    ]
    assert _said(_pod({"kemu.dev/logs": json.dumps(lines)}), 25) == [
        (0, "web of shop on n1: main, restart 2"),
        (4, "tick 0"),
        (5, "warm {unknown}"),
        (14, "tick 1"),
        (24, "tick 2"),
    ]


def test_a_text_is_printed_at_the_start_and_that_of_the_container_counts() -> None:
    assert _said(_pod({"kemu.dev/logs": "a\nb"}), 5) == [(0, "a"), (0, "b")]
    assert _said(_pod({"kemu.dev/logs": "a", "kemu.dev/logs.main": "b: c"}), 5) == [(0, "b: c")]


def test_what_a_program_prints_is_its_log_where_programs_are_understood() -> None:
    pod = _pod({}, {"image": "busybox", "command": ["sh", "-c", "echo a; sleep 3; echo b; sleep 100"]})
    assert _said(pod, 10, programs=True) == [(0, "a"), (3, "b")]
    assert _said(pod, 2, programs=True) == [(0, "a")]
    assert _said(pod, 10)[0][1].endswith("(simulated by kemu)")


def test_a_server_tells_of_its_life() -> None:
    pod = _pod({}, {"image": "nginx"})
    assert _said(pod, 10, programs=True) == [(0, "main starts: image nginx, restart 2 (simulated by kemu)")]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (7, "must be a text or a list"),
        ([{"att": "3s", "line": "x"}], r"\[0\].att: unknown"),
        ([{"at": "3s"}], r"\[0\].line"),
        ([{"at": "soon", "line": "x"}], r"\[0\].at: must be a duration"),
        ([{"at": "1s", "every": "2s", "line": "x"}], "cannot stand beside"),
        ([{"from": "1s", "line": "x"}], "needs every"),
        ([{"every": 0, "line": "x"}], "at least 1ms"),
    ],
)
def test_mistakes_are_named(data: Any, complaint: str) -> None:
    with pytest.raises(stated.LogsError, match=complaint):
        stated.parse(data)
