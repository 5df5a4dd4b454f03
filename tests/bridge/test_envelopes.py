"""The protobuf media type of Kubernetes, as a real API server speaks it."""

from __future__ import annotations

import base64

import pytest

from kemu.emulated.objects.wire import envelopes
from kemu.messages.k8s import core_v1_pb2


def test_a_message_comes_out_of_its_envelope_as_it_went_in() -> None:
    raw = core_v1_pb2.Pod(metadata={"name": "a" * 300}).SerializeToString()
    assert envelopes.unwrap(envelopes.wrap("v1", "Pod", raw)) == ("v1", "Pod", raw)


def test_the_envelope_is_that_of_a_real_scheduler() -> None:
    """What kube-scheduler v1.36.3 sent for an empty DeleteOptions."""
    sent = b"k8s\x00\n\x13\n\x02v1\x12\rDeleteOptions\x12\x00\x1a\x00\x22\x00"
    assert envelopes.unwrap(sent) == ("v1", "DeleteOptions", b"")
    assert sent.startswith(envelopes.wrap("v1", "DeleteOptions", b""))


def test_a_list_is_split_into_the_bytes_of_its_items() -> None:
    pods = core_v1_pb2.PodList() if hasattr(core_v1_pb2, "PodList") else None
    assert pods is None, "kemu has no lists as messages"
    one = core_v1_pb2.Pod(metadata={"name": "one", "resourceVersion": "7"}).SerializeToString()
    meta = b"\x12\x0242"
    raw = b"\x0a" + bytes((len(meta),)) + meta + b"\x12" + bytes((len(one),)) + one + b"\x12\x00"
    assert envelopes.split_list(raw) == (meta, [one, b""])
    assert envelopes.resource_version(one) == 7


def test_a_frame_of_a_watch_holds_a_type_and_an_envelope() -> None:
    pod = core_v1_pb2.Pod(metadata={"name": "one"}).SerializeToString()
    wrapped = envelopes.wrap("v1", "Pod", pod)
    extension = b"\x0a" + bytes((len(wrapped),)) + wrapped
    frame = b"\x0a\x05ADDED\x12" + bytes((len(extension),)) + extension
    assert envelopes.watch_event(frame) == ("ADDED", ("v1", "Pod", pod))


@pytest.mark.parametrize("data", [b"", b"{}", envelopes.MAGIC + b"\x0a\x7fshort", envelopes.MAGIC + b"\xff" * 12,
                                  envelopes.MAGIC + base64.b64decode("Cw==")])  # fmt: skip
def test_what_is_no_envelope_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        envelopes.unwrap(data)
