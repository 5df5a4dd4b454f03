"""What becomes of custom objects stands in the story; of others, where it is asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kemu.errors import KemuError
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomObject
from kemu.messages.k8s.core_v1_pb2 import ConfigMap
from tests.checks.logs import Log
from tests.report.test_sentences import told

A, B = "/registry/widgets.example.com/default/a", "/registry/widgets.example.com/default/b"


def widget(*managers: tuple[str, bytes], ending: bool = False, **content: Any) -> bytes:
    found = CustomObject(apiVersion="example.com/v1", kind="Widget", content=json.dumps(content).encode())
    found.metadata.name = "a"
    for name, fields in managers:
        entry = found.metadata.managedFields.add(manager=name)
        entry.fieldsV1.Raw = fields
    if ending:
        found.metadata.deletionTimestamp.seconds = 9
        found.metadata.finalizers.append("example.com/cleanup")
    return found.SerializeToString(deterministic=True)


def test_a_life() -> None:
    log, kubectl = Log(), ("kubectl", b"{}")
    log.txn(1, A, widget(kubectl, spec={"size": 3}))
    ready = {"conditions": [{"type": "Ready", "status": "True", "reason": "Done"}], "phase": "Up"}
    log.txn(2, A, widget(kubectl, ("operator", b"{1}"), spec={"size": 3}, status=ready))
    log.txn(3, A, widget(("kubectl", b"{2}"), ("operator", b"{1}"), spec={"size": 4, "x": [1]}, status=ready))
    log.txn(4, A, widget(("kubectl", b"{2}"), ("operator", b"{1}"), ending=True, spec={"size": 4, "x": [1]}, status={}))
    log.txn(5, A, None)
    assert told(log, object="widget/a") == [
        ("kubectl", "Widget a is created", ""),
        ("operator", "Widget a: Ready is True", "Done"),
        ("operator", "Widget a: phase is Up", ""),
        ("kubectl", "Widget a is changed", "spec.size 3 → 4, spec.x none → [1]"),
        ("API server", "Widget a is being deleted", "waits for example.com/cleanup"),
        ("API server", "Widget a is gone", ""),
    ]


def test_a_change_that_the_store_has_lost() -> None:
    log = Log()
    log.txn(1, A, widget(spec={"size": 3}))
    log.txn(2, A, widget(spec={"size": 4}))
    log.recovered(3, 1)
    assert told(log)[-1] == ("API server", "Widget a is changed", "spec.size 4 → 3")


def test_content_of_any_shape() -> None:
    """A status need not be what Kubernetes' own kinds have there."""
    log = Log()
    for seconds, status in enumerate(("up", ["x"], {"phase": 7, "conditions": {"Ready": True}}, {"conditions": [1]})):
        log.txn(seconds, A, widget(status=status))
    assert told(log) == [("API server", "Widget a is created", "")]


def test_many_share_a_line() -> None:
    log = Log()
    for place in range(9):
        log.txn(1, f"{A}-{place}", widget(spec={}))
    assert told(log, 3) == [("API server", "Widget a-0 is created, and 8 more like that", "")]


@pytest.mark.parametrize("name", ["widget/a", "Widget/default/a", "widgets/a", "widget.example.com/a"])
def test_names(name: str) -> None:
    log = Log()
    log.txn(1, A, widget(spec={}))
    log.txn(1, B, widget(spec={}))
    assert [what for _, what, _ in told(log, object=name)] == ["Widget a is created"]


def test_an_unknown_name() -> None:
    log = Log()
    log.txn(1, A, widget(spec={}))
    with pytest.raises(KemuError, match=r"no custom object widget/c; did you mean Widget/a\?"):
        told(log, object="widget/c")


def config(**data: str) -> bytes:
    found = ConfigMap(data=data)
    found.metadata.name = "a"
    return found.SerializeToString(deterministic=True)


def test_an_object_of_another_kind() -> None:
    log, key = Log(), "/registry/configmaps/default/a"
    log.txn(1, key, config(size="1"))
    log.txn(2, key, config(size="2"))
    log.txn(3, key, None)
    assert told(log) == []
    assert told(log, object="ConfigMap/a") == [
        ("API server", "ConfigMap a is created", ""),
        ("API server", "ConfigMap a is changed", 'data.size "1" → "2"'),
        ("API server", "ConfigMap a is gone", ""),
    ]
    with pytest.raises(KemuError, match=r"--object: no ConfigMap b; there are a"):
        told(log, object="configmaps/b")
    with pytest.raises(KemuError, match=r"--object: no Secret a; the run has none"):
        told(log, object="secret/a")
