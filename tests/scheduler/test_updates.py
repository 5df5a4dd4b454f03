"""Updates of pods, which are found out once for all schedulers of a process."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from kemu.emulated.scheduler.cache import updates
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.messages.k8s import core_v1_pb2
from tests.scheduler import objects


def _started(pod: core_v1_pb2.Pod) -> None:
    pod.status.startTime.seconds = 7


def _relabelled(pod: core_v1_pb2.Pod) -> None:
    pod.metadata.labels["app"] = "other"


def _resized(pod: core_v1_pb2.Pod) -> None:
    pod.spec.containers[0].resources.requests["cpu"].string = "3"


def _allocated(pod: core_v1_pb2.Pod) -> None:
    status = pod.status.containerStatuses.add(name=pod.spec.containers[0].name)
    status.resources.requests["cpu"].string = "5"


def _terminating(pod: core_v1_pb2.Pod) -> None:
    pod.metadata.deletionTimestamp.seconds = 9


def _moved(pod: core_v1_pb2.Pod) -> None:
    pod.spec.nodeName = "node-1"


@pytest.mark.parametrize("change", [_started, _relabelled, _resized, _allocated, _terminating, _moved])
def test_an_update_counts_as_the_pod_seen_anew(change: Callable[[core_v1_pb2.Pod], None]) -> None:
    old = objects.pod("p", "1", labels={"app": "web"}, on="node-0")
    new = copy.deepcopy(old)
    change(new)
    told, seeing = _cluster(old), _cluster(old)
    told.see_update(updates.of(old, new), old.spec != new.spec)
    seeing.see_pod(new, spec_changed=old.spec != new.spec)
    assert _counted(told) == _counted(seeing)
    assert told.pods[new.metadata.uid].pod is new


def test_a_pod_whose_status_tells_no_resources_any_more_is_counted_anew() -> None:
    new = objects.pod("p", "1", on="node-0")
    old = copy.deepcopy(new)
    _allocated(old)
    told, seeing = _cluster(old), _cluster(old)
    assert _counted(told) != _counted(_cluster(new))
    told.see_update(updates.of(old, new), False)
    seeing.see_pod(new, spec_changed=False)
    assert _counted(told) == _counted(seeing) == _counted(_cluster(new))


@pytest.mark.parametrize("change", [None, _started, _relabelled, _resized, _terminating])
@pytest.mark.parametrize("node", ["node-0", "node-1"])
def test_an_assumed_pod_that_the_watch_shows_on_a_node_counts_as_seen_anew(
    node: str, change: Callable[[core_v1_pb2.Pod], None] | None
) -> None:
    old = objects.pod("p", "1", labels={"app": "web"})
    new = copy.deepcopy(old)
    new.spec.nodeName = node
    if change is not None:
        change(new)
    told, seeing = _cluster(objects.pod("other", on="node-0")), _cluster(objects.pod("other", on="node-0"))
    for cluster in (told, seeing):
        cluster.assume(cluster.pending(old), "node-0")
    bound = copy.deepcopy(old)
    bound.spec.nodeName = node
    told.see_update(updates.of(old, new), bound.spec != new.spec)
    seeing.see_pod(new, spec_changed=bound.spec != new.spec)
    assert _counted(told) == _counted(seeing)
    assert not told.assumed
    assert told.pods[new.metadata.uid].pod is new


def test_an_update_of_a_pod_of_which_another_version_is_counted_is_the_pod_seen_anew() -> None:
    first = objects.pod("p", "1", on="node-0")
    second, third = copy.deepcopy(first), copy.deepcopy(first)
    _relabelled(second)
    _relabelled(third)
    cluster = _cluster(first)
    cluster.see_update(updates.of(second, third), False)  # changes nothing, but the first one had other labels
    assert cluster.pods[first.metadata.uid].labels == {"app": "other"}


def test_two_schedulers_share_what_an_update_changes_and_versions_are_not_mixed_up() -> None:
    old, new = objects.pod("p", on="node-0"), objects.pod("p", on="node-0")
    update = updates.of(old, new)
    assert updates.of(old, new) is update
    assert updates.of(copy.deepcopy(old), new) is not update
    for _ in range(updates.MOST_KEPT):
        updates.of(old, copy.deepcopy(new))
    assert updates.of(old, new) is not update, "only the latest are kept"
    assert len(updates.KEPT) == updates.MOST_KEPT


def _cluster(pod: core_v1_pb2.Pod) -> Cluster:
    cluster = Cluster()
    for number in range(2):
        cluster.set_node(objects.node(f"node-{number}"))
    cluster.see_pod(pod)
    return cluster


def _counted(cluster: Cluster) -> list[object]:
    known = [
        (pod.node_name, pod.labels, pod.requests, pod.non_zero, pod.start_s, pod.terminating)
        for pod in cluster.pods.values()
    ]
    return [known, [node.requested for node in cluster.rows], [list(node.pods) for node in cluster.rows]]
