"""What is found by label is what a search through everything finds."""

from __future__ import annotations

import random

import pytest

from kemu.emulated.objects import selectors
from kemu.emulated.objects.selectors import LabelSelector, Requirement
from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.indexes import PodIndex, SelectorIndex
from kemu.emulated.scheduler.cache.pods import PodInfo, ResourceNames, Templates
from kemu.emulated.scheduler.cache.terms import PodSelector
from kemu.emulated.scheduler.extenders.servers import KnownPods
from kemu.messages.k8s import core_v1_pb2

KEYS, VALUES, NAMESPACES = ("app", "tier", "zone"), ("a", "b", "c"), ("default", "kube-system", "team")


def _labels(draw: random.Random) -> dict[str, str]:
    return {key: draw.choice(VALUES) for key in KEYS if draw.random() < 0.6}


def _selector(draw: random.Random) -> LabelSelector:
    requirements = []
    for key in draw.sample(KEYS, draw.randrange(3)):
        operator = draw.choice((selectors.IN, selectors.IN, selectors.NOT_IN, selectors.EXISTS))
        values = () if operator == selectors.EXISTS else tuple(draw.sample(VALUES, draw.randrange(1, 3)))
        requirements.append(Requirement(key, operator, values))
    return LabelSelector(requirements, nothing=draw.random() < 0.05)


def _pod(number: int, draw: random.Random, templates: Templates) -> PodInfo:
    pod = core_v1_pb2.Pod()
    pod.metadata.name = pod.metadata.uid = f"pod-{number}"
    pod.metadata.namespace = draw.choice(NAMESPACES)
    for key, value in _labels(draw).items():
        pod.metadata.labels[key] = value
    return PodInfo(pod, templates.of(pod))


@pytest.mark.parametrize("seed", range(5))
def test_every_selector_that_matches_is_found_once(seed: int) -> None:
    draw = random.Random(seed)
    index: SelectorIndex[int] = SelectorIndex()
    known: dict[int, LabelSelector] = {}
    for number in range(300):
        if known and draw.random() < 0.3:
            gone = draw.choice(list(known))
            del known[gone]
            index.remove(gone)
        known[number] = _selector(draw)
        index.add(number, known[number], number)
        labels = _labels(draw)
        found = list(index.candidates(labels))
        assert len(found) == len(set(found))
        assert set(found) <= set(known)
        assert {key for key, selector in known.items() if selector.matches(labels)} <= set(found)
    for number in known:
        index.remove(number)
    assert len(index) == 0
    assert index._by_anchor == {}


@pytest.mark.parametrize("seed", range(5))
def test_every_pod_that_a_selector_matches_is_found(seed: int) -> None:
    draw = random.Random(seed)
    index, templates = PodIndex(), Templates(ResourceNames())
    pods = [_pod(number, draw, templates) for number in range(100)]
    for pod in pods:
        index.add(pod)
    for _ in range(100):
        gone = pods.pop(draw.randrange(len(pods)))
        index.remove(gone)
        pods.append(_pod(1000 + draw.randrange(10**6), draw, templates))
        index.add(pods[-1])
        namespaces = tuple(draw.sample(NAMESPACES, draw.randrange(1, 3)))
        wanted = tuple(
            PodSelector(namespaces, draw.random() < 0.2, _selector(draw)) for _ in range(draw.choice((1, 2)))
        )
        found = [uid for group in index.candidates(wanted) for uid in group]
        assert len(found) == len(set(found))
        matching = {pod.uid for pod in pods if all(one.matches(pod.namespace, pod.labels) for one in wanted)}
        assert matching <= set(found)
    for pod in pods:
        index.remove(pod)
    assert index._by_namespace == {}


def test_only_what_has_the_rarest_label_is_looked_at() -> None:
    """All selectors ask for ``app=web`` too: only one of them stands there."""
    index: SelectorIndex[int] = SelectorIndex()
    for number in range(1000):
        index.add(number, selectors.labels_equal({"app": "web", "release": f"{number}"}), number)
    assert len(list(index.candidates({"app": "web", "release": "7"}))) <= 2


def test_a_service_is_found_until_it_is_gone_or_selects_otherwise() -> None:
    cluster = Cluster()

    def service(selector: dict[str, str]) -> core_v1_pb2.Service:
        made = core_v1_pb2.Service()
        made.metadata.name, made.metadata.namespace = "web", "default"
        made.spec.selector.update(selector)
        return made

    def found(labels: dict[str, str], namespace: str = "default") -> list[dict[str, str]]:
        return [selector.equals for selector in cluster.services_of(namespace, labels)]

    cluster.set_service("default/web", service({"app": "web"}))
    assert found({"app": "web", "tier": "front"}) == [{"app": "web"}]
    assert found({"app": "web"}, "team") == found({"app": "other"}) == []
    cluster.set_service("default/web", service({"app": "other"}))
    assert found({"app": "web"}) == []
    assert found({"app": "other"}) == [{"app": "other"}]
    cluster.set_service("default/web", service({}))
    assert found({"app": "other"}) == []
    cluster.set_service("default/web", service({"app": "web"}))
    cluster.set_service("default/web", None)
    assert found({"app": "web"}) == []
    assert cluster._services == {}


def test_an_extender_finds_pods_by_node() -> None:
    pods = KnownPods()

    def pod(uid: str, node: str) -> core_v1_pb2.Pod:
        made = core_v1_pb2.Pod()
        made.metadata.uid, made.spec.nodeName = uid, node
        return made

    pods["a"], pods["b"], pods["c"] = pod("a", "n1"), pod("b", ""), pod("c", "n1")
    pods["b"] = pod("b", "n2")
    assert (list(pods.on_node("n1")), list(pods.on_node("n2"))) == (["a", "c"], ["b"])
    pods.pop("a", None)
    pods.pop("missing", None)
    del pods["b"]
    assert (list(pods), list(pods.on_node("n1")), list(pods.on_node("n2"))) == (["c"], ["c"], [])
    pods.clear()
    assert pods._by_node == {}
