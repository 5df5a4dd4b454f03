"""Merge patch and strategic merge patch: the algorithms, and what the server makes of them."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu import errors
from kemu.emulated.apiserver.registry.patching import patches, strategic_merges
from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.conversion import convert, json_operations
from kemu.emulated.objects.defaulting import defaults
from kemu.emulated.objects.validation import kinds
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2
from tests.apiserver.apiserver_cluster import Cluster, budget, node, pod, refusal, run

PODS = resources.BY_PLURAL["pods"]


def strategic(data: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Patch the JSON of a pod."""
    return strategic_merges.merge(copy.deepcopy(data), copy.deepcopy(patch), "core.v1.Pod")


def test_the_examples_of_rfc_7386() -> None:
    for target, patch, result in (
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ):
        assert patches.merge(target, patch) == result


DOUBLING = [{"op": "add", "path": "/data", "value": {"k0": "x" * 1000}}] + [
    {"op": "copy", "from": "/data", "path": f"/data/k{number}"} for number in range(1, 60)
]


def test_copies_of_a_json_patch_cannot_double_an_object_for_ever() -> None:
    """As kube-apiserver answers users, and tells of webhooks."""
    with pytest.raises(errors.Invalid) as refused:
        json_operations.apply({}, DOUBLING)
    assert str(refused.value) == "the server rejected our request due to an error in our request"
    with pytest.raises(json_operations.DoesNotApply) as told:
        json_operations.apply_told({}, DOUBLING)
    assert re.fullmatch(
        r"Unable to complete the copy, the accumulated size increase of copy is \d{7}, exceeding the limit 3145728",
        str(told.value),
    )
    once = json_operations.apply({}, DOUBLING[:2])
    assert once["data"]["k1"] == {"k0": "x" * 1000}


CONDITION_TYPES = st.sampled_from(["PodScheduled", "Ready", "Initialized"])
CONDITION = st.fixed_dictionaries(
    {"type": CONDITION_TYPES},
    optional={
        "status": st.sampled_from(["True", "False"]),
        "reason": st.sampled_from(["", "SchedulerError", None]),
        "message": st.sampled_from(["", "no room", 7]),
        "lastTransitionTime": st.sampled_from(["2026-01-01T00:00:00Z", "1969-12-31T23:59:59.5+02:00", "today"]),
        "observedGeneration": st.sampled_from([0, 3, True, 2**63]),
        "$patch": st.just("delete"),
        "unknown": st.just("x"),
    },
)


@given(
    there=st.lists(CONDITION_TYPES, unique=True),
    changes=st.lists(CONDITION, min_size=1, max_size=2) | CONDITION.map(lambda one: [one]),
    order=st.none() | st.lists(CONDITION_TYPES),
    nominated=st.sampled_from(["nothing", None, "", "node-1"]),
)
def test_the_short_way_of_a_schedulers_patch_ends_where_the_long_one_does(
    there: list[str], changes: list[dict[str, Any]], order: list[str] | None, nominated: str | None
) -> None:
    status: dict[str, Any] = {"conditions": changes}
    if order is not None:
        status["$setElementOrder/conditions"] = [{"type": one} for one in order]
    if nominated != "nothing":
        status["nominatedNodeName"] = nominated
    made = []
    for shown in (None, list[str]()):  # the long way shows what a refusal would show
        obj = core_v1_pb2.Pod()
        obj.status.nominatedNodeName = "node-0"
        for one in there:
            condition = obj.status.conditions.add(type=one, status="True", reason="")
            condition.lastTransitionTime.seconds = 7
        try:
            found: Any = patches.apply(PODS, obj, {"status": copy.deepcopy(status)}, patches.STRATEGIC, "", shown)
        except errors.ApiError as error:
            found = error.message
        made.append((found, obj.SerializeToString(deterministic=True)))
    assert made[0] == made[1]


def test_what_a_scheduler_writes_takes_the_short_way() -> None:
    obj = core_v1_pb2.Pod()
    for generation, reason in enumerate(("Unschedulable", "SchedulerError"), 1):
        patch = meta.condition_patch(obj.status.conditions, "PodScheduled", "False", reason, "why", 0, generation)
        assert patch is not None
        assert patches._set_condition(obj.status, patch["status"])
        (condition,) = obj.status.conditions
        assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", reason)
        assert condition.observedGeneration == generation


plain_json = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)
objects = st.dictionaries(st.text(max_size=2), plain_json, max_size=4)


def difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The merge patch that makes ``new`` of ``old``."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            patch[key] = difference(old[key], value)
        elif key not in old or old[key] != value or isinstance(old[key], bool) != isinstance(value, bool):
            patch[key] = value
    return patch


@given(objects, objects)
def test_a_merge_patch_makes_the_new_object_of_the_old_one(old: dict[str, Any], new: dict[str, Any]) -> None:
    patched = patches.merge(copy.deepcopy(old), difference(old, new))
    assert json.dumps(patched, sort_keys=True) == json.dumps(new, sort_keys=True)


def test_conditions_merge_by_type() -> None:
    data = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Old"}, {"type": "Initialized"}]}}
    patched = strategic(
        data,
        {"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}]}},
    )
    assert patched["status"]["conditions"] == [
        {"type": "Ready", "status": "True", "reason": "Old"},
        {"type": "PodScheduled", "status": "True"},
        {"type": "Initialized"},
    ]


def test_lists_without_a_key_are_replaced() -> None:
    data = {"spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}}
    assert strategic(data, {"spec": {"tolerations": [{"key": "c"}]}}) == {"spec": {"tolerations": [{"key": "c"}]}}
    node_spec = {"taints": [{"key": "a", "effect": "NoSchedule"}]}
    patch = {"taints": [{"key": "b", "effect": "NoExecute"}]}
    assert strategic_merges.merge(node_spec, copy.deepcopy(patch), "core.v1.NodeSpec") == patch


def test_containers_merge_deeply() -> None:
    data = {
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "env": [{"name": "A", "value": "1"}],
                    "ports": [{"containerPort": 80, "name": "http"}],
                },
                {"name": "helper"},
            ]
        }
    }
    patch = {
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "x",
                    "env": [{"name": "B", "value": "2"}, {"name": "A", "$patch": "delete"}],
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                }
            ]
        }
    }
    assert strategic(data, patch)["spec"]["containers"] == [
        {
            "name": "main",
            "image": "x",
            "env": [{"name": "B", "value": "2"}],
            "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}],
        },
        {"name": "helper"},
    ]


def test_directives() -> None:
    data = {
        "metadata": {
            "finalizers": ["a", "b", "c"],
            "labels": {"x": "1", "y": "2"},
            "ownerReferences": [{"uid": "1", "name": "one"}, {"uid": "2", "name": "two"}],
        }
    }

    def metadata(patch: dict[str, Any]) -> Any:
        return strategic(data, {"metadata": patch})["metadata"]

    assert metadata({"finalizers": ["d", "a"]})["finalizers"] == ["d", "a", "b", "c"]
    assert metadata({"$deleteFromPrimitiveList/finalizers": ["b"]})["finalizers"] == ["a", "c"]
    assert metadata({"labels": {"$patch": "replace", "z": "3"}})["labels"] == {"z": "3"}
    assert metadata({"labels": {"$patch": "delete"}})["labels"] == {}
    assert metadata({"labels": {"x": None}})["labels"] == {"y": "2"}
    assert metadata({"labels": {"$retainKeys": ["y", "z"], "z": "3"}})["labels"] == {"y": "2", "z": "3"}
    assert metadata({"deletionTimestamp": None, "labels": {"$patch": "replace"}})["labels"] == {}
    assert metadata({"ownerReferences": [{"uid": "1", "$patch": "delete"}]})["ownerReferences"] == [
        {"uid": "2", "name": "two"}
    ]
    assert metadata({"ownerReferences": [{"$patch": "replace"}, {"uid": "3"}]})["ownerReferences"] == [{"uid": "3"}]
    ordered = metadata(
        {
            "$setElementOrder/ownerReferences": [{"uid": "3"}, {"uid": "1"}],
            "ownerReferences": [{"uid": "3", "name": "three"}],
        }
    )
    assert [one["uid"] for one in ordered["ownerReferences"]] == ["3", "1", "2"]


def test_bad_patches() -> None:
    for patch, text in (
        ({"metadata": {"$patch": "explode"}}, "unknown patch type: explode in map: map[$patch:explode]"),
        ({"spec": {"containers": [{"image": "x"}]}}, "map: map[image:x] does not contain declared merge key: name"),
        ({"metadata": {"$retainKeys": "a"}}, "invalid patch format of retainKeys"),
        ({"metadata": {"$retainKeys": ["a"], "b": "1"}}, "invalid patch format of retainKeys"),
        ({"spec": {"$setElementOrder/containers": 1}}, "expected a []interface {}, but received a int64"),
        (
            {"spec": {"containers": [{"name": "a", "$patch": "merge"}]}},
            "merging lists cannot yet be specified in the patch",
        ),
    ):
        with pytest.raises(errors.ApiError, match=f"^{re.escape(text)}$"):
            strategic({"spec": {"containers": [{"name": "b"}]}, "metadata": {}}, patch)


def test_inline_fields_are_found() -> None:
    """The sources of a volume stand inline in its JSON."""
    obj = convert.from_json(core_v1_pb2.Pod, {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}})
    patch = {"spec": {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}}
    patches.apply(PODS, obj, patch, patches.STRATEGIC)
    assert convert.to_json(obj)["spec"]["volumes"] == [{"name": "v", "emptyDir": {"medium": "Memory"}}]


# On the server ------------------------------------------------------------------------------------------------------


def test_a_status_patch_leaves_the_rest_alone() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
        patched = await cluster.client.patch(
            "pods",
            "a",
            "default",
            {
                "metadata": {"labels": {"x": "1"}},
                "spec": {"nodeName": "n1"},
                "status": {"nominatedNodeName": "n1", "conditions": [condition]},
            },
            subresource="status",
            type="strategic",
        )
        assert patched.spec == created.spec
        assert patched.status.nominatedNodeName == "n1"
        assert [one.reason for one in patched.status.conditions] == ["Unschedulable"]
        patched = await cluster.client.patch(
            "pods", "a", "default", {"status": {"nominatedNodeName": None}}, subresource="status"
        )
        assert not patched.status.nominatedNodeName
        assert len(patched.status.conditions) == 1

    run(main)


def test_a_patch_of_the_spec_bumps_the_generation() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        patched = await cluster.client.patch("pods", "a", "default", {"spec": {"activeDeadlineSeconds": 5}})
        assert (patched.metadata.generation, patched.spec.activeDeadlineSeconds) == (2, 5)
        patched = await cluster.client.patch("pods", "a", "default", {"metadata": {"annotations": {"a": "b"}}})
        assert patched.metadata.generation == 2

    run(main)


def test_patches_of_different_fields_do_not_disturb_each_other() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1"))
        patching = [
            cluster.client_of(number % 2, f"user{number}").patch(
                "nodes", "n1", "", {"metadata": {"labels": {f"l{number}": "x"}}}
            )
            for number in range(8)
        ]
        await asyncio.gather(*patching)
        found = await cluster.client.get("nodes", "n1")
        assert {f"l{number}" for number in range(8)} <= set(found.metadata.labels)

    run(main, servers=({}, {}))


def test_preconditions_of_a_patch() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        label = {"metadata": {"labels": {"x": "1"}}}
        await refusal(errors.Conflict, cluster.client.patch("pods", "a", "default", label, uid="another"), cluster)
        wrong = {"metadata": {"uid": "another"}}
        await refusal(errors.Invalid, cluster.client.patch("pods", "a", "default", wrong), cluster)
        first = await cluster.client.patch("pods", "a", "default", label, uid=created.metadata.uid)
        old = {"metadata": {"labels": {"x": "2"}, "resourceVersion": created.metadata.resourceVersion}}
        await refusal(errors.Conflict, cluster.client.patch("pods", "a", "default", old), cluster)
        old["metadata"]["resourceVersion"] = first.metadata.resourceVersion
        assert (await cluster.client.patch("pods", "a", "default", old)).metadata.labels["x"] == "2"
        request = api_pb2.PatchRequest(name="a", patch=b'{"metadata": {"labels": {"x": "3"}}}')
        request.resource.resource, request.resource.namespace = "pods", "default"
        request.preconditions.resource_version = first.metadata.resourceVersion
        with pytest.raises(grpc.aio.AioRpcError, match="the object has been modified"):
            await cluster.stub().Patch(request)
        request.preconditions.resource_version = str(cluster.etcd.revision)
        await cluster.stub().Patch(request)

    run(main)


def test_a_patch_needs_no_version_where_an_update_does() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(budget("b", {"app": "x"}, minAvailable=1))
        patch = {"spec": {"minAvailable": 2}}
        patched = await cluster.client.patch("poddisruptionbudgets", "b", "default", patch)
        assert (patched.spec.minAvailable.intVal, patched.metadata.generation) == (2, 2)
        created.metadata.resourceVersion = ""
        await refusal(errors.Invalid, cluster.client.update(created), cluster)

    run(main)


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        (b"{", "error decoding patch"),
        (b"[1]", "json: cannot unmarshal array into Go value of type map"),
        (b'{"spec": {"nodNeame": "x"}}', "nodNeame"),
        (b'{"spec": {"containers": "none"}}', "spec.containers"),
        (b'{"metadata": {"name": "b"}}', "does not match the name on the URL"),
        (b'{"kind": "Node"}', "the kind of the patch"),
    ],
)
def test_patches_that_make_no_sense(patch: bytes, text: str) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        request = api_pb2.PatchRequest(name="a", patch=patch)
        request.resource.resource, request.resource.namespace = "pods", "default"
        before = cluster.etcd.revision
        with pytest.raises(Exception, match=text) as caught:
            await cluster.stub().Patch(request)
        assert caught.value.code().name == "INVALID_ARGUMENT"
        assert cluster.etcd.revision == before

    run(main)


def test_a_patch_may_not_make_the_object_invalid() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        patch = {"spec": {"restartPolicy": "Never"}}
        await refusal(errors.Invalid, cluster.client.patch("pods", "a", "default", patch), cluster)
        await refusal(errors.NotFound, cluster.client.patch("pods", "b", "default", patch), cluster)
        await refusal(
            errors.NotFound, cluster.client.patch("pods", "a", "default", patch, subresource="scale"), cluster
        )

    run(main)


# Whatever comes ------------------------------------------------------------------------------------------------------

BASE: dict[str, Any] = {
    "metadata": {
        "name": "a",
        "namespace": "default",
        "finalizers": ["kemu.dev/a", "kemu.dev/b"],
        "labels": {"x": "1"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
    },
    "spec": {
        "containers": [{"name": "main", "image": "i", "env": [{"name": "A", "value": "1"}]}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "nodeSelector": {"zone": "a"},
    },
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"},
}
LEAVES = st.none() | st.sampled_from([True, 0, 1, "", "a", "1", "merge", "replace", "delete", [], {}, ["a"], [{}]])
DIRECTIVES = st.sampled_from(["$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/"])


@st.composite
def patches_of(draw: Any, target: Any) -> Any:
    """Something that looks like a patch of ``target``."""
    if draw(st.integers(0, 5)) == 0 or not isinstance(target, (dict, list)):
        return draw(LEAVES)
    if isinstance(target, list):
        elements = [draw(patches_of(element)) for element in target]
        return elements + ([draw(LEAVES)] if draw(st.booleans()) else [])
    patch = {key: draw(patches_of(value)) for key, value in target.items() if draw(st.booleans())}
    if draw(st.integers(0, 2)) == 0:
        directive = draw(DIRECTIVES)
        field = draw(st.sampled_from(sorted(target))) if directive.endswith("/") and target else ""
        patch[directive + field] = draw(st.one_of(LEAVES, st.just(target.get(field))))
    return patch


@given(patches_of(BASE), st.sampled_from([patches.MERGE, patches.STRATEGIC]))
def test_a_patch_is_applied_or_refused_whatever_it_is(patch: Any, kind: int) -> None:
    obj = convert.from_json(core_v1_pb2.Pod, BASE)
    try:
        patches.apply(PODS, obj, patches.parse(json.dumps(patch).encode()), kind)
    except errors.ApiError:
        return
    defaults.apply(obj)
    kinds.validate_update(obj, convert.from_json(core_v1_pb2.Pod, BASE))


def test_a_patch_moves_nothing_to_another_namespace() -> None:
    """``applyPatchToCurrentObject`` of endpoints/handlers: another one is refused, none is that of the request."""

    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        change = cluster.client.patch("pods", "a", "default", {"metadata": {"namespace": "other"}})
        error = await refusal(errors.BadRequest, change, cluster)
        assert str(error) == "the namespace of the provided object does not match the namespace sent on the request"
        patched = await cluster.client.patch("pods", "a", "default", {"metadata": {"namespace": None}})
        assert patched.metadata.namespace == "default"

    run(main)
