"""Get and list: how fresh, in pages, selected."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re

import pytest

from kemu import errors
from kemu.emulated.client.sessions import error_of
from kemu.messages.v1 import api_pb2
from tests.apiserver.apiserver_cluster import Cluster, node, pod, refusal, run


def names(items: list) -> list[str]:
    return [one.metadata.name for one in items]


def test_a_get_is_linearizable_unless_it_says_otherwise() -> None:
    async def main(cluster: Cluster) -> None:
        writer, reader = cluster.client_of(0), cluster.client_of(1, "reader")
        created = await writer.create(pod("a"))
        assert await reader.get("pods", "a", "default") == created
        await refusal(errors.NotFound, reader.get("pods", "a", "default", resource_version="0"))
        await cluster.clock.sleep(11)
        assert await reader.get("pods", "a", "default", resource_version="0") == created
        changed = await writer.patch("pods", "a", "default", {"metadata": {"labels": {"x": "1"}}})
        assert await reader.get("pods", "a", "default", resource_version="0") == created
        assert await reader.get("pods", "a", "default") == changed

    run(main, servers=({}, {"cache_lag_s": 10}))


def test_not_older_than_waits_for_the_cache() -> None:
    async def main(cluster: Cluster) -> None:
        writer, reader = cluster.client_of(0), cluster.client_of(1, "reader")
        created = await writer.create(pod("a"))
        version = created.metadata.resourceVersion
        start_ns = cluster.clock.now_ns()
        assert await reader.get("pods", "a", "default", resource_version=version) == created
        assert 1.9e9 < cluster.clock.now_ns() - start_ns < 2.1e9, "as long as the cache lags"
        newer = await writer.create(pod("b"))
        listed = await reader.list("pods", resource_version=newer.metadata.resourceVersion)
        assert names(listed.items) == ["a", "b"]

    run(main, servers=({}, {"cache_lag_s": 2}))


def test_what_lies_in_the_future_times_out() -> None:
    async def main(cluster: Cluster) -> None:
        future = str(cluster.etcd.revision + 100)
        start_ns = cluster.clock.now_ns()
        error = await refusal(errors.ServerTimeout, cluster.client.list("pods", resource_version=future))
        assert str(error) == f"Timeout: Too large resource version: {future}, current: {cluster.etcd.revision}"
        assert 2.9e9 < cluster.clock.now_ns() - start_ns < 3.2e9
        await refusal(errors.ServerTimeout, cluster.client.get("pods", "a", "default", resource_version=future))
        start_ns = cluster.clock.now_ns()
        error = await refusal(errors.ServerTimeout, cluster.client.list("pods", limit=1, resource_version=future))
        assert "Too large resource version" in str(error)
        assert cluster.clock.now_ns() - start_ns < 0.1e9, "with a limit it means exactly this one: nobody waits for it"

    run(main)


def test_the_cache_learns_how_far_the_store_is_from_progress() -> None:
    """Keys outside of the registry move the revision, and no event tells of them."""

    async def main(cluster: Cluster) -> None:
        revision = cluster.etcd.change({b"/elsewhere": b"x"})
        start_ns = cluster.clock.now_ns()
        listed = await cluster.client.list("pods", resource_version=str(revision))
        assert listed.resource_version == str(revision)
        assert cluster.clock.now_ns() - start_ns < 0.3e9

    run(main)


@pytest.mark.parametrize("version", ["x", "-1", "1.5", "9" * 30])
def test_bad_resource_versions(version: str) -> None:
    async def main(cluster: Cluster) -> None:
        await refusal(errors.BadRequest, cluster.client.list("pods", resource_version=version))
        # As kube-apiserver's watch cache has it: without a reason.
        get = cluster.client.get("pods", "a", "default", resource_version=version)
        error = await refusal(errors.ApiError, get)
        assert error.code == 500
        assert str(error).startswith(f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: ')

    run(main)


async def some_pods(cluster: Cluster) -> None:
    for number in range(12):
        namespace = "default" if number % 3 else "kube-system"
        new = pod(f"p{number:02}", namespace, labels={"n": str(number), "parity": "even" if number % 2 == 0 else "odd"})
        await cluster.client.create(new)
        if number % 4 == 0:
            await cluster.client.bind(namespace, f"p{number:02}", "", f"n{number % 8}")
    await cluster.clock.sleep(1)


@pytest.mark.parametrize("version", ["", "0"])
@pytest.mark.parametrize("limit", [0, 2])
@pytest.mark.parametrize(
    ("namespace", "labels", "fields", "expected"),
    [
        ("", "", "", list(range(12))),
        ("default", "", "", [1, 2, 4, 5, 7, 8, 10, 11]),
        ("", "parity=even", "", [0, 2, 4, 6, 8, 10]),
        ("default", "parity=even,n notin (2,4)", "", [8, 10]),
        ("", "", "spec.nodeName=n0", [0, 8]),
        ("", "", "spec.nodeName=", [1, 2, 3, 5, 6, 7, 9, 10, 11]),
        ("", "n!=8", "spec.nodeName=n0", [0]),
        ("", "", "spec.nodeName!=n0,spec.nodeName!=", [4]),
        ("", "", "metadata.name=p05", [5]),
        ("kube-system", "", "metadata.name=p05", []),
        ("", "", "metadata.namespace=kube-system", [0, 3, 6, 9]),
        ("", "", "spec.schedulerName=default-scheduler,status.phase=Running", []),
        ("", "", "spec.nodeName=nowhere", []),
        ("nowhere", "", "", []),
    ],
)
def test_lists_select_the_same_from_cache_and_store(
    version: str, limit: int, namespace: str, labels: str, fields: str, expected: list[int]
) -> None:
    async def main(cluster: Cluster) -> None:
        await some_pods(cluster)
        found: list[str] = []
        token = ""
        while True:
            page = await cluster.client.list(
                "pods", namespace, labels, fields, limit, "" if token else version, continue_token=token
            )
            if limit and version == "":
                assert len(page.items) <= limit
                assert len(page.items) == limit or not page.continue_token
            found += names(page.items)
            token = page.continue_token
            if not token:
                break
        in_order = sorted(expected, key=lambda number: (number % 3 == 0, number))
        assert found == [f"p{number:02}" for number in in_order], "by namespace, then by name"

    run(main)


@pytest.mark.parametrize("seed", range(4))
def test_a_list_in_pages_is_one_snapshot(seed: int) -> None:
    """Whatever happens between the pages, and whichever API server answers."""

    async def main(cluster: Cluster) -> None:
        random_ = random.Random(seed)
        present: dict[str, str] = {}

        async def change() -> None:
            name = f"p{random_.randrange(30):02}"
            if name in present:
                if random_.random() < 0.5:
                    await cluster.client.delete("pods", name, "default")
                    del present[name]
                else:
                    label = {"metadata": {"labels": {"n": str(random_.random())}}}
                    present[name] = (
                        await cluster.client.patch("pods", name, "default", label)
                    ).metadata.resourceVersion
            else:
                present[name] = (await cluster.client.create(pod(name))).metadata.resourceVersion

        for _ in range(40):
            await change()
        for _ in range(5):
            expected = dict(sorted(present.items()))
            page = await cluster.client.list("pods", limit=3)
            found = {one.metadata.name: one.metadata.resourceVersion for one in page.items}
            version = page.resource_version
            while page.continue_token:
                for _ in range(random_.randrange(4)):
                    await change()
                client = cluster.client_of(random_.randrange(2), f"reader{random_.random()}")
                page = await client.list("pods", limit=3, continue_token=page.continue_token)
                assert page.resource_version == version
                found |= {one.metadata.name: one.metadata.resourceVersion for one in page.items}
            assert found == expected

    run(main, servers=({}, {"cache_lag_s": 1}))


def test_a_consistent_list_comes_from_the_cache_when_it_has_caught_up() -> None:
    """A thousand kubelets that list their pods at once must not scan all pods a thousand times."""

    async def main(cluster: Cluster) -> None:
        for number in range(5):
            await cluster.client.create(pod(f"p{number}", nodeName=f"n{number % 2}"))
            before = cluster.etcd.scans
            listed = await cluster.client.list("pods", field_selector=f"spec.nodeName=n{number % 2}", limit=500)
            assert names(listed.items)[-1] == f"p{number}"
            assert listed.resource_version == str(cluster.etcd.revision)
            assert cluster.etcd.scans == before

    run(main)


def test_a_consistent_list_does_not_depend_on_the_cache() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        await cluster.clock.sleep(1)
        cluster.etcd.is_mute = True
        await cluster.client.create(pod("b"))
        assert names((await cluster.client.list("pods", resource_version="0")).items) == ["a"]
        assert names((await cluster.client.list("pods")).items) == ["a", "b"]

    run(main)


def test_the_first_page_says_how_many_remain() -> None:
    async def main(cluster: Cluster) -> None:
        for number in range(5):
            await cluster.client.create(pod(f"p{number}"))
        request = api_pb2.ListRequest(limit=2)
        request.resource.resource = "pods"
        assert (await cluster.stub().List(request)).remaining_item_count == 3
        request.label_selector = "a=b"
        assert (await cluster.stub().List(request)).remaining_item_count == 0

    run(main)


def test_an_old_continue_token_has_expired() -> None:
    async def main(cluster: Cluster) -> None:
        for number in range(5):
            await cluster.client.create(pod(f"p{number}"))
        page = await cluster.client.list("pods", limit=2)
        await cluster.client.create(pod("another"))
        cluster.etcd.compacted = cluster.etcd.revision
        error = await refusal(errors.Gone, cluster.client.list("pods", limit=2, continue_token=page.continue_token))
        assert str(error).startswith("The provided continue parameter is too old")
        assert error.reason == "Expired"
        assert not cluster.refused(), "that is nothing to note"

    run(main)


def test_a_continue_token_belongs_to_its_list() -> None:
    async def main(cluster: Cluster) -> None:
        for number in range(3):
            await cluster.client.create(pod(f"p{number}"))
        page = await cluster.client.list("pods", limit=2)
        assert json.loads(base64.b64decode(page.continue_token + "==")) == {
            "v": "meta.k8s.io/v1", "rv": int(page.resource_version), "start": "/default/p1\0",
        }  # fmt: skip
        wrong = ({"rv": 0}, {"rv": True}, {"start": ""}, {"start": "/a/../b"}, {"v": "v2"})
        texts = [json.dumps({"v": "meta.k8s.io/v1", "rv": 3, "start": "/a", **one}).encode() for one in wrong]
        for token in ["rubbish", *[base64.b64encode(text).decode() for text in (b"[1]", *texts)]]:
            error = await refusal(errors.BadRequest, cluster.client.list("pods", continue_token=token))
            assert str(error).startswith("invalid continue token: continue key is not valid")
        # What begins without a slash does with one, and before the first revision is now (``DecodeContinue``).
        now = json.dumps({"v": "meta.k8s.io/v1", "rv": -2, "start": "default/p2"}).encode()
        token = base64.urlsafe_b64encode(now).decode().rstrip("=")
        rest = await cluster.client.list("pods", continue_token=token)
        assert [one.metadata.name for one in rest.items] == ["p2"]
        await refusal(
            errors.BadRequest,
            cluster.client.list("pods", resource_version="5", continue_token=page.continue_token),
        )

    run(main)


@pytest.mark.parametrize(
    ("resource", "namespace", "labels", "fields", "reason", "text"),
    [
        ("pods", "", "a in", "", errors.BadRequest, "unable to parse|couldn't parse"),
        ("pods", "", "", "spec.colour=red", errors.BadRequest, "field label not supported: spec.colour"),
        ("nodes", "default", "", "", errors.BadRequest, "not namespaced"),
        ("widgets", "", "", "", errors.NotFound, "the server could not find the requested resource"),
    ],
)
def test_lists_that_cannot_be_answered(
    resource: str, namespace: str, labels: str, fields: str, reason: type[errors.ApiError], text: str
) -> None:
    async def main(cluster: Cluster) -> None:
        request = api_pb2.ListRequest(label_selector=labels, field_selector=fields)
        request.resource.resource, request.resource.namespace = resource, namespace
        with pytest.raises(Exception, match=text) as caught:
            await cluster.stub().List(request)
        assert caught.value.code().name == reason.grpc_code
        watch = cluster.watch(resource=resource, namespace=namespace, labels=labels, fields=fields)
        event = await watch.next()
        assert isinstance(error_of(event.error), reason)
        assert re.search(text, str(error_of(event.error)))
        assert [one["verb"] for one in cluster.refused()] == ["list", "watch"]

    run(main)


def test_a_read_after_a_write_through_another_server_sees_it() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(node("n1"))

        async def check(number: int) -> None:
            writer = cluster.client_of(number % 2, f"writer{number}")
            reader = cluster.client_of((number + 1) % 2, f"reader{number}")
            for round_ in range(5):
                name = f"p{number}-{round_}"
                created = await writer.create(pod(name))
                assert await reader.get("pods", name, "default") == created
                assert name in names((await reader.list("pods")).items)

        await asyncio.gather(*(check(number) for number in range(4)))

    run(main, servers=({}, {}), timing={"storeLatency": {"uniform": {"min": 0.0, "max": 0.02}}})
