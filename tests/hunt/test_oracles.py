"""Each oracle sees the bug that is its own, and nothing in its twin, in courses that were written down by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kemu.lab.hunt.projects import Ignored
from tests.hunt.recorded import (
    END_S,
    OPERATOR,
    Recording,
    claim,
    config,
    going,
    owned,
    pod,
    reference,
    stateful,
    symptoms,
    widget,
)

CLAIMED = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-z-2"}}]
MOUNTED = [{"name": "c", "configMap": {"name": "c"}}]


def nothing() -> Recording:
    return Recording()


def claims(replicas: int) -> Recording:
    """A claim of the third pod goes when so many are wanted, and comes again."""
    found = Recording()
    found.put(1, stateful("z", 3))
    found.put(1, claim("data-z-2"))
    found.put(2, stateful("z", replicas))
    found.remove(3, claim("data-z-2"), OPERATOR)
    found.put(4, stateful("z", 3))
    found.put(4, claim("data-z-2"))
    return found


def claims_of_pod(is_used: bool) -> Recording:
    found = Recording()
    found.put(1, claim("data-z-2"), OPERATOR)
    found.put(1, pod("a", CLAIMED) if is_used else going(pod("a", CLAIMED)))
    found.remove(3, claim("data-z-2"), OPERATOR)
    return found


def mounts(is_used: bool) -> Recording:
    found = Recording()
    found.put(1, config("c"), OPERATOR)
    found.put(1, pod("a", MOUNTED if is_used else ()))
    found.remove(3, config("c"), OPERATOR)
    return found


def twins(is_forced: bool) -> Recording:
    found = Recording()
    found.put(1, stateful("z", 1))
    owners: dict[str, Any] = {"ownerReferences": owned("StatefulSet", "z", "/registry/statefulsets/default/z-1")}
    found.put(1, pod("z-0", **owners))
    found.put(2, pod("z-0", node="n", **owners))
    if not is_forced:
        ended = pod("z-0", node="n", **owners)
        ended["status"] = {"phase": "Succeeded"}
        found.put(3, ended)
    found.remove(4, pod("z-0"))
    found.put(4, pod("z-0", **owners))
    return found


def volumes(second: str) -> Recording:
    """Two pods share a claim, the second on a node."""
    found = Recording()
    found.put(1, claim("data-z-2"))
    for name, node in (("a", "n"), ("b", second)):
        found.put(2, pod(name, CLAIMED))
        found.put(3, pod(name, CLAIMED, node))
    return found


def aliens(maker: str) -> Recording:
    found = Recording()
    found.put(1, config("theirs"), maker)
    found.remove(3, config("theirs"), OPERATOR)
    return found


def needless(is_wanted: bool) -> Recording:
    found = Recording()
    found.put(1, pod("a-0"), OPERATOR)
    found.remove(3, pod("a-0"), OPERATOR)
    if is_wanted:
        found.put(4, pod("a-0"), OPERATOR)
    return found


def scaled(by: str) -> Recording:
    found = Recording()
    found.put(1, stateful("z", 3))
    found.put(2, stateful("z", 1), by)
    found.put(3, stateful("z", 3))
    return found


def orphans(uid: str) -> Recording:
    found = Recording()
    found.put(1, widget("w"))
    found.put(2, config("c", ownerReferences=owned("Widget", "w", uid)))
    return found


def to_and_fro(values: str) -> Recording:
    found = Recording()
    for second, value in enumerate(values):
        found.put(END_S - 30 + second, config("c", {"a": value}), OPERATOR)
    return found


@pytest.mark.parametrize(
    ("what", "wrong", "right"),
    [
        ("claim", lambda: claims(3), lambda: claims(1)),
        ("claim", lambda: claims_of_pod(True), lambda: claims_of_pod(False)),
        ("mount", lambda: mounts(True), lambda: mounts(False)),
        ("twins", lambda: twins(True), lambda: twins(False)),
        ("twins", lambda: volumes("m"), lambda: volumes("n")),
        ("alien", lambda: aliens(""), lambda: aliens(OPERATOR)),
        ("needless", lambda: needless(True), lambda: needless(False)),
        ("scaled", lambda: scaled(OPERATOR), lambda: scaled("")),
        ("orphan", lambda: orphans("gone"), lambda: orphans("/registry/widgets.example.com/default/w-1")),
        ("flapping", lambda: to_and_fro("ababababababab"), lambda: to_and_fro("abcdefghijklmn")),
    ],
)
def test_safety(what: str, wrong: Callable[[], Recording], right: Callable[[], Recording]) -> None:
    def kinds(found: Recording) -> set[str]:
        return {one.what for one in symptoms(nothing(), found)}

    assert what in kinds(wrong())
    assert what not in kinds(right())
    assert what not in {one.what for one in symptoms(wrong(), wrong())}, "as in the reference"


def finalized(waits: bool) -> Recording:
    """A widget's finalizer deletes a config map that is nobody's."""
    found = Recording()
    found.put(1, config("c"), OPERATOR)
    found.put(1, widget("w", finalizers=["example.com/clean"]))
    found.put(2, going(widget("w", finalizers=["example.com/clean"])))
    if waits:
        found.remove(3, config("c"), OPERATOR)
    found.remove(4, widget("w"))
    return found


def test_who_deletes_what_goes_already_does_no_more_harm() -> None:
    """A client that got no response to a deletion sends it again."""
    twice = Recording()
    twice.put(1, pod("a-0"), OPERATOR)
    twice.wrote_nothing(2, pod("a-0"), verb="delete")  # it goes within its grace period
    twice.remove(3, pod("a-0"), OPERATOR)
    twice.put(4, pod("a-0"), OPERATOR)
    assert symptoms(needless(True), twice) == []
    twice.remove(5, pod("a-0"), OPERATOR)
    twice.put(6, pod("a-0"), OPERATOR)
    assert [one.what for one in symptoms(needless(True), twice) if one.is_bug] == ["needless"]


def test_a_finalizer_that_does_not_wait() -> None:
    found = symptoms(finalized(True), finalized(False))
    assert [one.what for one in found] == ["finalizer", "surplus"]
    assert found[0].text == "Widget.example.com w is gone before ConfigMap c is, for which its finalizer had to wait"
    late = finalized(False)
    late.remove(5, config("c"), OPERATOR)
    assert [(one.what, one.is_bug) for one in symptoms(finalized(True), late)] == [("finalizer", False)]
    assert symptoms(finalized(True), finalized(True)) == []


def test_a_stale_view_excuses_what_is_made_good() -> None:
    """Scaled, as what it saw said, and back again: no controller can avoid that."""

    def bugs(found: Recording, is_stale: bool) -> list[bool]:
        return [one.is_bug for one in symptoms(scaled(""), found, is_stale=is_stale) if one.what == "scaled"]

    lasting = scaled(OPERATOR)
    lasting.put(5, stateful("z", 1))
    assert bugs(scaled(OPERATOR), True) == [False]
    assert bugs(scaled(OPERATOR), False) == [True]
    assert bugs(lasting, True) == [True]


def written(*values: dict[str, str], at_s: float = 1) -> Recording:
    found = Recording()
    for value in values:
        found.put(at_s, config("c", value), OPERATOR)
    return found


def test_what_is_no_difference() -> None:
    def with_data(data: dict[str, str], **metadata: object) -> Recording:
        found = Recording()
        found.put(1, config("c", data, **metadata))
        return found

    for before, after in (
        ({"at": "2026-01-01T00:00:00Z"}, {"at": "2026-01-01T00:00:09.5+02:00"}),
        ({"text": "since 2026-01-01 00:00:00 UTC"}, {"text": "since 2026-01-01 00:01:00 UTC"}),
        ({"peer": "http://10.244.0.5:2380"}, {"peer": "http://10.244.1.7:2380"}),
        ({"id": "0f9be6ae-4b67-4b2b-8c07-2b0d6dbcb3a1"}, {"id": "11111111-4b67-4b2b-8c07-2b0d6dbcb3a1"}),
        ({"json": '{"a": [1, 2], "uid": "x"}'}, {"json": '{"uid": "y", "a": [2, 1]}'}),
        ({"config-hash": "0a1b2c3d4e"}, {"config-hash": "99ab2c3d4e"}),
        ({"seen-revision": "120"}, {"seen-revision": "131"}),
    ):
        assert symptoms(with_data(before), with_data(after)) == [], before
    for before, after in (
        ({"size": "1"}, {"size": "2"}),
        ({"version": "13"}, {"version": "12"}),
        ({"listen": "0.0.0.0"}, {"listen": "127.0.0.1"}),
        ({"json": '{"a": [1, 2]}'}, {"json": '{"a": [1, 3]}'}),
    ):
        assert [one.what for one in symptoms(with_data(before), with_data(after))] == ["different"], before


@pytest.mark.parametrize(("node", "is_wrong"), [("n", False), ("", True)])
def test_where_a_pod_is(node: str, is_wrong: bool) -> None:
    """A pod that is bound has the zone of its node; one that is not bound has what somebody wrote."""
    normal, found = Recording(), Recording()
    for one, zone in ((normal, "a"), (found, "b")):
        one.put(1, pod("p", node=node and f"{node}-{zone}", labels={"topology.kubernetes.io/zone": zone}))
    assert bool(symptoms(normal, found)) == is_wrong


@pytest.mark.parametrize("is_made", [True, False])
def test_where_a_volume_is(is_made: bool) -> None:
    """One that was made for a pod is where that is; one that somebody has written is where he wants it."""
    normal, found = Recording(), Recording()
    for one, zone in ((normal, "a"), (found, "b")):
        term = {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "v", "annotations": {"pv.kubernetes.io/provisioned-by": "csi"} if is_made else {}},
            "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}},
        }
        one.put(1, volume)
    assert bool(symptoms(normal, found)) != is_made


def test_an_old_hash_is_a_difference() -> None:
    normal, found = written({"config-hash": "aaaa1111"}, {"config-hash": "bbbb2222"}), Recording()
    found.put(1, config("c", {"config-hash": "aaaa1111"}), OPERATOR)
    assert [one.what for one in symptoms(normal, found)] == ["different"]


def test_random_values_and_names() -> None:
    """What differs between two references says nothing; how many there are of a name does."""

    def made(*names: str, password: str = "x") -> Recording:
        found = Recording()
        for name in names:
            found.put(1, config(name, {"password": password}), OPERATOR)
        return found

    normal = reference(made("job-a1b2c", password="p"), made("job-z9y8x", password="q"))
    assert normal.symptoms(made("job-k3k3k", password="r").outcome) == []
    assert [one.what for one in normal.symptoms(made("job-k3k3k", "job-m4m4m").outcome) if one.is_bug] == ["surplus"]
    assert [one.what for one in normal.symptoms(made().outcome)] == ["missing"]
    nodes = reference(made("kwok-a1-red-1-7"), made("kwok-b2-blue-1-8"))
    assert nodes.symptoms(made("kwok-c3-green-1-9").outcome) == []
    assert [one.what for one in nodes.symptoms(made("other-c3-green-1-9").outcome) if one.is_bug] == [
        "surplus",
        "missing",
    ]
    same = reference(made("c", password="p"), made("c", password="q"))
    assert same.symptoms(made("c", password="r").outcome) == []


def test_generated_names() -> None:
    def made(*names: str, label: str = "l") -> Recording:
        found = Recording()
        for name in names:
            found.put(1, pod(name, generateName="a-", labels={"app": label}))
        return found

    assert symptoms(made("a-11111", "a-22222"), made("a-33333", "a-44444")) == []
    assert [one.what for one in symptoms(made("a-1"), made("a-1", "a-2")) if one.is_bug] == [
        "missing",
        "surplus",
        "surplus",
    ]
    assert [one.what for one in symptoms(made("a-1"), made("a-1", label="m"))] == ["different"]


def test_names_that_end_with_a_hash_of_their_owner() -> None:
    def made(*names: str, owner: str = "b") -> Recording:
        found = Recording()
        for name in names:
            one = config(name)
            one["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": name}]
            found.put(1, one)
        return found

    def told(before: Recording, after: Recording) -> list[str]:  # the owner is not there, which is not what is asked
        return [one.what for one in symptoms(before, after) if one.is_bug and one.what != "orphan"]

    assert told(made("job-b-54c52"), made("job-b-b71d0")) == []
    assert told(made("job-b-54c52"), made("job-b-b71d0", "job-b-78786")) == ["missing", "surplus", "surplus"]
    assert told(made("job-b-54c52", owner="x"), made("job-b-b71d0", owner="x")) == ["missing", "surplus"]
    for before, after in (("b-00001", "b-00002"), ("b-29384723", "b-29384724"), ("b-0", "b-1")):
        assert told(made(before), made(after)) == ["missing", "surplus"], "counters and times are no hashes"


def test_kinds_that_kubernetes_keeps() -> None:
    def made(by: str, label: str) -> Recording:
        found = Recording()
        one = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a": label}}}
        key = found.put(1, one)
        assert key
        if by:
            found.put(2, one, by)
        return found

    assert symptoms(made("", "x"), made("", "y")) == []
    assert [one.what for one in symptoms(made(OPERATOR, "x"), made(OPERATOR, "y"))] == ["different"]


def test_costs() -> None:
    normal, more, claims_more = Recording(), Recording(), Recording()
    more.put(1, config("spare"), OPERATOR)
    more.remove(2, config("spare"), OPERATOR)
    assert {(one.what, one.is_bug) for one in symptoms(normal, more)} == {("created", False), ("deleted", False)}
    claims_more.put(1, claim("spare"), OPERATOR)
    claims_more.remove(2, claim("spare"), OPERATOR)
    assert ("deleted", True) in {(one.what, one.is_bug) for one in symptoms(normal, claims_more)}


@pytest.mark.parametrize(("created_s", "expected"), [(4, []), (2, ["deleted"])])
def test_what_comes_after_its_owner_is_gone_has_held_nothing(created_s: int, expected: list[str]) -> None:
    """A claim whose creation was long under way, as in a slow webhook."""
    normal, found = Recording(), Recording()
    for one in (normal, found):
        one.put(1, widget("w", uid="1"))
    spare = claim("spare", ownerReferences=owned("Widget", "w", "1"))
    for at_s in (2, 3, 4):
        if at_s == created_s:
            found.put(at_s, spare, OPERATOR)
        if at_s == 3:
            for one in (normal, found):
                one.remove(3, widget("w"))
    found.remove(5, spare)
    assert [one.what for one in symptoms(normal, found) if one.is_bug] == expected


@pytest.mark.parametrize(("at_s", "is_bug"), [(END_S - 60, False), (END_S - 10, True)])
def test_hot(at_s: float, is_bug: bool) -> None:
    normal, found = written({}), written({})
    for place in range(60):
        found.wrote_nothing(at_s + place / 100, config("c"))
    assert [(one.what, one.is_bug) for one in symptoms(normal, found)] == [("hot", is_bug)]
    assert symptoms(normal, found)[0].text.endswith("61 writes, 60 of which changed nothing; in the reference 1")


def test_rest() -> None:
    """What comes right in time is none; what moves until the end is."""
    normal = written({"a": "1"})
    in_time, late = written({"a": "0"}), written({"a": "0"})
    in_time.put(END_S - 30, config("c", {"a": "1"}), OPERATOR)
    late.put(END_S - 5, config("c", {"a": "1"}), OPERATOR)
    assert symptoms(normal, in_time) == []
    found = symptoms(normal, late)
    assert [one.text for one in found] == ["ConfigMap c does not come to rest: it still changes 5.0 s before the end"]
    assert symptoms(late, late) == []


def test_ignored() -> None:
    normal, found = written({"a": "1"}), written({"a": "2"})
    for path, kind, shown in (("data.a", "", []), ("data", "ConfigMap", []), ("data", "Secret", ["different"])):
        made = reference(normal, ignored=[Ignored(path, kind)])
        assert [one.what for one in made.symptoms(found.outcome)] == shown


def test_properties() -> None:
    """They weigh most; in the reference they have to hold."""
    normal, found = written({"a": "1"}), written({"a": "2"})
    found.outcome.failed = ["one-pod"]
    assert symptoms(normal, found)[0].text == "property one-pod does not hold"
    assert reference(normal, found).problems == ["property one-pod does not hold"]
    assert reference(normal, normal).problems == []


def test_crashes_and_exits() -> None:
    """A panic is a bug; who ends, and is started again, has only cost something if all comes right."""
    normal, found = written({}), written({})
    found.outcome.exits = {OPERATOR: ["it ended by itself, with exit code 1"]}
    assert [(one.what, one.is_bug) for one in symptoms(normal, found)] == [("exit", False)]
    found.outcome.crashes = {OPERATOR: ["panic: x"]}
    assert [(one.what, one.is_bug) for one in symptoms(normal, found)] == [("crash", True), ("exit", False)]
    assert len(reference(normal, found).problems) == 2
