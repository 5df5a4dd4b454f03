"""What a pod requests: sums, init containers, sidecars, overhead, pod level, resize."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.emulated.objects.amounts import qos, requests
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import core_v1_pb2


def container(name: str, restart: str | None = None, limits: dict[str, str] | None = None, **amounts: str) -> Any:
    data: dict[str, Any] = {"name": name, "resources": {"requests": dict(amounts), "limits": limits or {}}}
    if restart:
        data["restartPolicy"] = restart
    return data


def pod_of(containers: list[Any], init: list[Any] | None = None, **spec: Any) -> core_v1_pb2.Pod:
    status = spec.pop("status", {})
    data = {"spec": {"containers": containers, "initContainers": init or [], **spec}, "status": status}
    return convert.from_json(core_v1_pb2.Pod, data)


def test_containers_add_up() -> None:
    pod = pod_of([container("a", cpu="100m", memory="1Gi"), container("b", cpu="1", **{"example.com/gpu": "2"})])
    assert requests.pod_requests(pod) == {"cpu": 1100, "example.com/gpu": 2, "memory": 2**30}
    assert list(requests.pod_requests(pod)) == ["cpu", "example.com/gpu", "memory"]


def test_only_the_sum_is_rounded_up() -> None:
    assert requests.pod_requests(pod_of([container("a", cpu="100500u", memory="100500m")])) == {
        "cpu": 101,
        "memory": 101,
    }
    two = [container("a", cpu="100500u", memory="500m"), container("b", cpu="100500u", memory="500m")]
    assert requests.pod_requests(pod_of(two)) == {"cpu": 201, "memory": 1}


def test_the_largest_init_container_counts_where_it_is_more() -> None:
    init = [container("i", cpu="3", memory="1Mi"), container("j", cpu="1", memory="2Mi", storage="1")]
    pod = pod_of([container("a", cpu="2", memory="4Mi")], init)
    assert requests.pod_requests(pod) == {"cpu": 3000, "memory": 4 * 2**20, "storage": 1}


def test_sidecars_count_from_where_they_start() -> None:
    first, sidecar, last = (
        container("first", cpu="5"),
        container("sidecar", "Always", cpu="1"),
        container("last", cpu="5"),
    )
    main = [container("main", cpu="1")]
    assert requests.pod_requests(pod_of(main, [first, sidecar])) == {"cpu": 5000}
    assert requests.pod_requests(pod_of(main, [sidecar, last])) == {"cpu": 6000}
    assert requests.pod_requests(pod_of(main, [sidecar])) == {"cpu": 2000}


def test_overhead_is_added_at_the_end() -> None:
    pod = pod_of([container("a", cpu="1")], [container("i", cpu="2")], overhead={"cpu": "250m", "memory": "1Mi"})
    assert requests.pod_requests(pod) == {"cpu": 2250, "memory": 2**20}


def test_pod_level_requests_replace_the_sum() -> None:
    resources = {"requests": {"cpu": "3", "hugepages-2Mi": "4Mi"}}
    pod = pod_of([container("a", cpu="1", memory="1Mi")], resources=resources, overhead={"cpu": "1"})
    assert requests.pod_requests(pod) == {"cpu": 4000, "hugepages-2Mi": 4 * 2**20, "memory": 2**20}


STATUS = {
    "containerStatuses": [
        {"name": "a", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2", "memory": "2Mi"}}
    ]
}
INFEASIBLE = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}


def test_a_pod_that_is_resized_counts_with_the_most_that_is_said_of_it() -> None:
    pod = pod_of([container("a", cpu="5", memory="1Mi")], status=STATUS)
    assert requests.pod_requests(pod) == {"cpu": 5000, "memory": 2**20}
    assert requests.pod_requests_on_node(pod) == {"cpu": 5000, "memory": 2 * 2**20}
    infeasible = pod_of([container("a", cpu="5", memory="1Mi")], status={**STATUS, **INFEASIBLE})
    assert requests.pod_requests_on_node(infeasible) == {"cpu": 3000, "memory": 2 * 2**20}


def test_a_pod_whose_own_resources_are_resized() -> None:
    """``resource.PodRequests``: the status of the pod counts for what its spec requests at pod level, nothing else."""
    spec: dict[str, Any] = {"resources": {"requests": {"cpu": "3", "memory": "8Mi"}}, "overhead": {"cpu": "1"}}
    status = {"resources": {"requests": {"cpu": "5", "hugepages-2Mi": "2Mi"}}, "allocatedResources": {"cpu": "4"}}
    containers = [container("a", cpu="1", memory="1Mi")]
    pod = pod_of(containers, status=status, **spec)
    assert requests.pod_requests(pod) == {"cpu": 4000, "memory": 8 * 2**20}
    assert requests.pod_requests_on_node(pod) == {"cpu": 6000, "memory": 8 * 2**20}
    assert requests.non_zero_requests_on_node(pod) == (6000, 8 * 2**20)
    infeasible = pod_of(containers, status={**status, **INFEASIBLE}, **spec)
    assert requests.pod_requests_on_node(infeasible) == {"cpu": 6000, "memory": 0}
    only_allocated = pod_of(containers, status={"allocatedResources": {"cpu": "9"}}, **spec)
    assert requests.pod_requests_on_node(only_allocated) == requests.pod_requests(pod)


def test_defaults_for_scores() -> None:
    mib_200 = 200 * 2**20
    assert requests.non_zero_requests(pod_of([container("a")])) == (100, mib_200)
    assert requests.non_zero_requests(pod_of([container("a", cpu="0", memory="0")])) == (0, 0)
    assert requests.non_zero_requests(pod_of([container("a"), container("b", cpu="1")])) == (1100, 2 * mib_200)
    with_pod_level = pod_of([container("a")], resources={"requests": {"cpu": "2"}})
    assert requests.non_zero_requests(with_pod_level) == (2000, mib_200)
    assert requests.non_zero_requests(with_pod_level, pod_level=False) == (100, mib_200)
    resized = pod_of([container("a", cpu="1", memory="1Mi")], status=STATUS)
    assert requests.non_zero_requests_on_node(resized) == (3000, 2 * 2**20)


def test_ranking_knows_only_pod_level_requests_where_there_are_any() -> None:
    pod = pod_of([container("a", cpu="1", memory="1Mi")], resources={"limits": {"cpu": "2"}}, overhead={"cpu": "1"})
    assert requests.ranking_request(pod, "cpu") == 0
    assert requests.ranking_request(pod, "pods") == 1
    plain = pod_of([container("a", cpu="1")], overhead={"cpu": "1", "memory": "1Mi"})
    assert requests.ranking_request(plain, "cpu") == 2000
    assert requests.ranking_request(plain, "memory") == 0


def test_allocatable() -> None:
    node = convert.from_json(
        core_v1_pb2.Node, {"status": {"allocatable": {"pods": "110", "cpu": "3920m", "memory": "7.5Gi"}}}
    )
    assert requests.resource_list(node.status.allocatable) == {"cpu": 3920, "memory": 8_053_063_680, "pods": 110}


def test_a_bad_quantity_is_an_error() -> None:
    pod = core_v1_pb2.Pod()
    pod.spec.containers.add(name="a").resources.requests["cpu"].string = "1Gii"
    with pytest.raises(ValueError, match="1Gii"):
        requests.pod_requests(pod)


amounts = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 9).map(str))
containers = st.builds(lambda resources: container("c", None, None, **resources), amounts)
sidecars_too = st.builds(
    lambda resources, restart: container("i", restart, None, **resources),
    amounts,
    st.sampled_from([None, "Always"]),
)


@given(st.lists(containers, min_size=1, max_size=3), st.lists(sidecars_too, max_size=4))
def test_a_pod_requests_the_most_that_runs_at_one_time(main: list[Any], init: list[Any]) -> None:
    """The definition, played through: start the init containers one by one, then the containers."""
    moments: list[list[Any]] = []
    running: list[Any] = []
    for one in init:
        moments.append([*running, one])
        if one.get("restartPolicy") == "Always":
            running.append(one)
    moments.append([*running, *main])
    most: dict[str, int] = {}
    for moment in moments:
        for name in ("cpu", "memory"):
            total = sum(int(one["resources"]["requests"].get(name, "0")) for one in moment)
            most[name] = max(most.get(name, 0), total * (1000 if name == "cpu" else 1))
    found = requests.pod_requests(pod_of(main, init))
    assert {name: found.get(name, 0) for name in most} == most


# Quality of service -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (pod_of([container("a")]), "BestEffort"),
        (pod_of([container("a", storage="1")]), "BestEffort"),
        (pod_of([container("a", cpu="0")]), "BestEffort"),
        (pod_of([container("a", cpu="1")]), "Burstable"),
        (pod_of([container("a", None, {"cpu": "1", "memory": "1"}, cpu="1", memory="1")]), "Guaranteed"),
        (pod_of([container("a", None, {"cpu": "1000m", "memory": "1"}, cpu="1", memory="1")]), "Guaranteed"),
        (pod_of([container("a", None, {"cpu": "1", "memory": "1"}, cpu="1")]), "Burstable"),
        (
            pod_of([container("a", None, {"cpu": "1", "memory": "1"}, cpu="1", memory="1")], [container("i")]),
            "Burstable",
        ),
        (
            pod_of(
                [container("a")],
                resources={"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}},
            ),
            "Guaranteed",
        ),
        (pod_of([container("a", cpu="1")], resources={}), "BestEffort"),
        (pod_of([container("a")], resources={"limits": {"cpu": "1"}}), "Burstable"),
    ],
)
def test_qos_classes(pod: core_v1_pb2.Pod, expected: str) -> None:
    assert qos.computed_qos_class(pod) == expected
    assert qos.qos_class(pod) == expected


def test_the_class_in_the_status_wins() -> None:
    pod = pod_of([container("a")], status={"qosClass": "Guaranteed"})
    assert (qos.qos_class(pod), qos.computed_qos_class(pod)) == ("Guaranteed", "BestEffort")
