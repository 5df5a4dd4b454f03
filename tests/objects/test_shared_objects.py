"""Objects that several readers share: parsed once, and a change of one is noticed."""

from __future__ import annotations

import operator

import pytest

from kemu.emulated.objects.wire import shared_objects, wires
from kemu.emulated.objects.wire.shared_objects import MOST_BYTES, PLACES, SharedObjects
from kemu.messages.k8s import core_v1_pb2


def wire_of(name: str, revision: int) -> bytes:
    pod = core_v1_pb2.Pod()
    pod.metadata.name = name
    return pod.SerializeToString(deterministic=True) + wires.version_suffix(revision)


@pytest.fixture
def objects() -> SharedObjects:
    made = SharedObjects()
    made.checks = True
    return made


def test_the_same_bytes_at_the_same_revision_are_parsed_once(objects: SharedObjects) -> None:
    pod = objects.parse(core_v1_pb2.Pod, 7, wire_of("a", 7))
    assert pod.metadata.name == "a"
    assert objects.parse(core_v1_pb2.Pod, 7, bytes(bytearray(wire_of("a", 7)))) is pod


def test_other_bytes_kinds_or_revisions_are_other_objects(objects: SharedObjects) -> None:
    """As after a store lost acknowledged writes, in another run of this process, and when a place is taken again."""
    pod = objects.parse(core_v1_pb2.Pod, 7, wire_of("a", 7))
    assert objects.parse(core_v1_pb2.Pod, 7, wire_of("b", 7)).metadata.name == "b"
    assert isinstance(objects.parse(core_v1_pb2.Node, 7, wire_of("b", 7)), core_v1_pb2.Node)
    objects.parse(core_v1_pb2.Pod, 7 + PLACES, wire_of("c", 7 + PLACES))
    again = objects.parse(core_v1_pb2.Pod, 7, wire_of("a", 7))
    assert again == pod
    assert again is not pod


def test_a_changed_object_is_noticed_by_the_next_reader_and_at_the_end(objects: SharedObjects) -> None:
    pod = objects.parse(core_v1_pb2.Pod, 7, wire_of("a", 7))
    pod.spec.nodeName = "n1"
    with pytest.raises(AssertionError, match="Pod /a at 7 is shared and has been changed"):
        objects.parse(core_v1_pb2.Pod, 7, wire_of("a", 7))
    with pytest.raises(AssertionError, match="has been changed"):
        objects.check()
    objects.clear()
    objects.check()


def test_of_large_objects_fewer_are_kept(objects: SharedObjects) -> None:
    objects.checks = False
    name = "x" * (1 << 20)
    for revision in range(1, 100):
        pod = objects.parse(core_v1_pb2.Pod, revision, wire_of(name, revision))
        assert objects.parse(core_v1_pb2.Pod, revision, wire_of(name, revision)) is pod
        assert sum(len(kept[0]) for kept in objects.kept if kept is not None) == objects._bytes <= MOST_BYTES
    # A place that is taken again counts once.
    for number in range(10 * PLACES):
        objects.parse(core_v1_pb2.Pod, 1_000 + number, wire_of("a", 1_000 + number))
    assert objects._bytes == sum(len(kept[0]) for kept in objects.kept if kept is not None)


def test_lists_share_their_objects_until_as_much_news_has_come(objects: SharedObjects) -> None:
    wires_of_list = [wire_of(f"pod-{number}", number) for number in range(3 * PLACES)]
    first = objects.parse_list(core_v1_pb2.Pod, wires_of_list)
    again = objects.parse_list(core_v1_pb2.Pod, [bytes(bytearray(wire)) for wire in wires_of_list])
    assert [one.metadata.name for one in first] == [f"pod-{number}" for number in range(3 * PLACES)]
    assert all(map(operator.is_, first, again))
    (other,) = objects.parse_list(core_v1_pb2.Pod, [wire_of("pod-0", 7)])
    assert (other.metadata.name, other.metadata.resourceVersion) == ("pod-0", "7")
    (node,) = objects.parse_list(core_v1_pb2.Node, wires_of_list[:1])
    assert isinstance(node, core_v1_pb2.Node)
    for number in range(PLACES + 1):
        objects.parse(core_v1_pb2.Pod, number, wire_of("news", number))
    assert not any(map(operator.is_, first, objects.parse_list(core_v1_pb2.Pod, wires_of_list)))


def test_what_short_lists_left_behind_is_forgotten(objects: SharedObjects) -> None:
    objects.checks = False
    for number in range(10 * PLACES):
        (pod,) = objects.parse_list(core_v1_pb2.Pod, [wire_of("a", number)])
        assert objects.parse_list(core_v1_pb2.Pod, [wire_of("a", number)])[0] is pod
    assert len(objects._listed[core_v1_pb2.Pod]) <= PLACES + 2


def test_who_holds_an_object_of_a_large_list_holds_packed_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_objects, "LARGE", 50)
    objects = SharedObjects()
    wires_of = [wire_of(f"pod-{number}", number) for number in range(1, 51)]
    held = [objects.hold(pod) for pod in objects.parse_list(core_v1_pb2.Pod, wires_of)]
    sizes = sum(map(len, wires_of))
    for revision in range(1, PLACES + 2):  # so much news has come
        objects.parse(core_v1_pb2.Pod, 100 + revision, wire_of("news", 100 + revision))
    packed = {past for one in held if isinstance(past := one._value, shared_objects.Past)}
    assert len(packed) == 4, "of sixteen each"
    assert sum(len(past._packed) for past in packed) < sizes
    assert [one.get().SerializeToString(deterministic=True) for one in held] == [
        core_v1_pb2.Pod.FromString(wire).SerializeToString(deterministic=True) for wire in wires_of
    ]


def test_a_changed_object_of_a_list_is_noticed(objects: SharedObjects) -> None:
    (pod,) = objects.parse_list(core_v1_pb2.Pod, [wire_of("a", 7)])
    pod.spec.nodeName = "n1"
    with pytest.raises(AssertionError, match="Pod /a at 7 is shared and has been changed"):
        objects.check()


def test_room_is_made_no_more_often_than_needed(objects: SharedObjects) -> None:
    first = objects.parse(core_v1_pb2.Pod, 1, wire_of("a", 1))
    for revision in range(2, PLACES):
        objects.parse(core_v1_pb2.Pod, revision, wire_of("x" * 7_000, revision))
    assert objects.parse(core_v1_pb2.Pod, 1, wire_of("a", 1)) is first


def test_the_revision_stands_at_the_end_of_the_bytes() -> None:
    for revision in (1, 9, 10, 123_456_789):
        assert shared_objects.revision_of(wire_of("pod-5", revision)) == revision
    assert shared_objects.revision_of(b"") == 0
