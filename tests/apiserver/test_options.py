"""Options of lists and watches, with the answers of kube-apiserver: exact versions, expired pages, initial events."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.apiserver.watch.fanout import INITIAL_EVENTS_END
from kemu.emulated.client.sessions import error_of
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2
from tests.apiserver.apiserver_cluster import Cluster, pod, refusal, run

INVALID = 'ListOptions.meta.k8s.io "" is invalid: '
NOT_FOR_LIST = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"
ONLY = 'resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"'
MATCH = "resourceVersionMatch: Forbidden: "


def request(match: str = "", version: str = "", **fields: Any) -> api_pb2.ListRequest:
    initial = fields.pop("initial", None)
    made = api_pb2.ListRequest(resource_version_match=match, resource_version=version, **fields)
    made.resource.resource = "pods"
    if initial is not None:
        made.send_initial_events = initial
    return made


class Lists:
    """Lists with all of their options, over a Session."""

    def __init__(self, cluster: Cluster) -> None:
        self._session = cluster.client._session

    async def __call__(self, wanted: api_pb2.ListRequest) -> Any:
        call = self._session.next_call()
        call.list.CopyFrom(wanted)
        return await self._session.send_list(call, core_v1_pb2.Pod)


def names(listed: Any) -> list[str]:
    return [one.metadata.name for one in listed.items]


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (request("Exact"), f"{MATCH}resourceVersionMatch is forbidden unless resourceVersion is provided"),
        (
            request("Exact", "0"),
            f'{MATCH}resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        (
            request("Newest", "1"),
            'resourceVersionMatch: Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""',
        ),
        (
            request("NotOlderThan", initial=True),
            f"[{MATCH}resourceVersionMatch is forbidden unless resourceVersion is provided, {NOT_FOR_LIST}]",
        ),
    ],
)
def test_options_of_a_list_are_checked(wanted: api_pb2.ListRequest, text: str) -> None:
    async def main(cluster: Cluster) -> None:
        assert str(await refusal(errors.Invalid, Lists(cluster)(wanted))) == INVALID + text

    run(main)


def test_a_version_that_is_no_number_is_refused_in_gos_words() -> None:
    async def main(cluster: Cluster) -> None:
        error = await refusal(errors.BadRequest, Lists(cluster)(request(version="abc")))
        why = 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
        assert str(error) == f"invalid resource version: {why}"
        watched = await (await cluster.watch(version="abc").start()).next()
        assert (error_of(watched.error).message, error_of(watched.error).code) == (why, 500)
        far = await refusal(errors.BadRequest, Lists(cluster)(request(version="9" * 20)))
        assert str(far).endswith("value out of range")

    run(main)


def test_an_exact_list_shows_the_past() -> None:
    async def main(cluster: Cluster) -> None:
        lists = Lists(cluster)
        first = await cluster.client.create(pod("a"))
        then = first.metadata.resourceVersion
        await cluster.client.create(pod("b"))
        await cluster.client.delete("pods", "a", "default")
        listed = await lists(request("Exact", then))
        assert (names(listed), listed.resource_version) == (["a"], then)
        assert names(await lists(request(version=then, limit=5))) == ["a"], "with a limit Exact is meant"
        assert names(await lists(request("NotOlderThan", then, limit=5))) == ["b"]
        assert names(await lists(request(version=then))) == ["b"], "not older than"
        cluster.etcd.compacted = cluster.etcd.revision
        error = await refusal(errors.Gone, lists(request("Exact", then)))
        assert str(error) == "The resourceVersion for the provided list is too old."
        assert not error.continue_token

    run(main)


def test_an_expired_page_offers_an_inconsistent_rest() -> None:
    async def main(cluster: Cluster) -> None:
        for number in range(6):
            await cluster.client.create(pod(f"p{number}"))
        page = await cluster.client.list("pods", limit=2)
        await cluster.client.delete("pods", "p3", "default")
        await cluster.client.create(pod("p2b"))
        cluster.etcd.compacted = cluster.etcd.revision
        error = await refusal(errors.Gone, cluster.client.list("pods", limit=2, continue_token=page.continue_token))
        assert "Continuing with the provided token results in an inconsistent list" in str(error)
        rest = await cluster.client.list("pods", limit=3, continue_token=error.continue_token)
        assert names(rest) == ["p2", "p2b", "p4"], "from where the page was to begin, as it is now"
        assert int(rest.resource_version) == cluster.etcd.revision
        assert names(await cluster.client.list("pods", continue_token=rest.continue_token)) == ["p5"]

    run(main)


@pytest.mark.parametrize("seed", range(5))
def test_pages_are_one_snapshot_whatever_is_written_meanwhile(seed: int) -> None:
    """Property: of any paged list, also across API servers, the pages together are the state at its version."""

    async def main(cluster: Cluster) -> None:
        states: dict[int, list[str]] = {}
        chance = random.Random(seed)
        alive: set[str] = set()

        async def write() -> None:
            client = cluster.client_of(0, "writer")
            for number in range(120):
                if alive and chance.random() < 0.4:
                    name = chance.choice(sorted(alive))
                    gone = await client.delete("pods", name, "default")
                    alive.discard(name)
                    revision = gone.metadata.resourceVersion
                else:
                    name = f"p{chance.randrange(10_000):04}-{number}"
                    alive.add(name)
                    revision = (await client.create(pod(name))).metadata.resourceVersion
                states[int(revision)] = sorted(alive)

        async def read(reader: int) -> int:
            lists = 0
            clients = [cluster.client_of(server, f"reader-{reader}") for server in (0, 1)]
            while len(states) < 120:
                limit = chance.randrange(1, 9)
                page = await chance.choice(clients).list("pods", "default", limit=limit)
                found, version = names(page), page.resource_version
                while page.continue_token:
                    server = chance.choice(clients)
                    page = await server.list("pods", "default", limit=limit, continue_token=page.continue_token)
                    assert page.resource_version == version
                    found += names(page)
                if int(version) in states:
                    assert found == states[int(version)]
                    lists += 1
            return lists

        checked, _ = await asyncio.gather(asyncio.gather(read(0), read(1)), write())
        assert sum(checked) > 5

    run(main, servers=({}, {}), seed=seed, timing={"apiLatency": {"uniform": {"min": 0.001, "max": 0.004}}})


@pytest.mark.parametrize(
    ("match", "initial", "text"),
    [
        ("", True, f"{MATCH}sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        (
            "NotOlderThan",
            None,
            f"{MATCH}resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        (
            "Exact",
            True,
            f"[{MATCH}sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, {ONLY}]",
        ),
    ],
)
def test_options_of_a_watch_are_checked(match: str, initial: bool | None, text: str) -> None:
    async def main(cluster: Cluster) -> None:
        event = await cluster.watch(match=match, initial=initial).next()
        assert isinstance(error_of(event.error), errors.Invalid)
        assert error_of(event.error).message == INVALID + text

    run(main)


@pytest.mark.parametrize("version", ["", "0", "now"])
def test_initial_events_end_with_an_annotated_bookmark(version: str) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        created = await cluster.client.create(pod("b"))
        wanted = created.metadata.resourceVersion if version == "now" else version
        if version == "0":
            await cluster.clock.sleep(1)
        watch = cluster.watch(version=wanted, match="NotOlderThan", initial=True, bookmarks=True)
        events = [await watch.next() for _ in range(3)]
        assert [event.type for event in events] == [0, 0, api_pb2.WatchEvent.BOOKMARK]
        shown = core_v1_pb2.Pod.FromString(events[2].object)
        assert dict(shown.metadata.annotations) == {INITIAL_EVENTS_END: "true"}
        assert int(shown.metadata.resourceVersion) == events[2].resource_version == cluster.etcd.revision
        await cluster.client.create(pod("c"))
        event = await watch.next()
        assert (event.type, core_v1_pb2.Pod.FromString(event.object).metadata.name) == (0, "c")

    run(main)


def test_without_bookmarks_the_initial_events_just_end() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        watch = cluster.watch(match="NotOlderThan", initial=True, bookmarks=False)
        assert await watch.take(1) == [("ADDED", "a")]
        await cluster.clock.sleep(5)
        await cluster.client.create(pod("b"))
        assert await watch.take(1) == [("ADDED", "b")]

    run(main)


def test_a_watch_without_initial_events_begins_now() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        watch = await cluster.watch(match="NotOlderThan", initial=False).start()
        await cluster.clock.sleep(1)
        await cluster.client.create(pod("b"))
        assert await watch.take(1) == [("ADDED", "b")]

    run(main)


def test_initial_events_of_a_version_that_is_never_reached_end_with_an_error() -> None:
    async def main(cluster: Cluster) -> None:
        watch = cluster.watch(version="999", match="NotOlderThan", initial=True, bookmarks=True)
        event = await watch.next()
        assert isinstance(error_of(event.error), errors.ServerTimeout)

    run(main)
