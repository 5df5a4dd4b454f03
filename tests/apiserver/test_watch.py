"""Watching: initial state, resuming, selectors, bookmarks, and being cut off."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.client.sessions import error_of
from kemu.emulated.objects import selectors
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2
from tests.apiserver.apiserver_cluster import SERVERS, Cluster, Watch, node, pod, run, shown, watch_request

BOOKMARK = ("BOOKMARK", "")


@pytest.mark.parametrize("version", ["", "0"])
def test_a_watch_begins_with_the_present_state(version: str) -> None:
    async def main(cluster: Cluster) -> None:
        for name in ("b", "a"):
            await cluster.client.create(pod(name))
        await cluster.clock.sleep(1)
        watch = cluster.watch(version=version)
        assert await watch.take(2) == [("ADDED", "a"), ("ADDED", "b")]
        bookmark = await watch.next()
        assert shown(bookmark) == BOOKMARK
        assert bookmark.resource_version == cluster.etcd.revision
        created = await cluster.client.create(pod("c"))
        event = await watch.next()
        assert shown(event) == ("ADDED", "c")
        assert core_v1_pb2.Pod.FromString(event.object) == created
        assert event.resource_version == int(created.metadata.resourceVersion)

    run(main)


def test_without_a_version_the_initial_state_is_complete() -> None:
    """Its bookmark comes when the lagging cache has all that the store had when the watch was asked for."""

    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a"))
        stale, complete = cluster.watch(1, "stale", version="0"), cluster.watch(1, "complete", version="")
        start_ns = cluster.clock.now_ns()
        assert await stale.take(2) == [BOOKMARK, ("ADDED", "a")]
        assert await complete.take(1) == [("ADDED", "a")]
        bookmark = await complete.next()
        assert shown(bookmark) == BOOKMARK
        assert bookmark.resource_version == int(created.metadata.resourceVersion)
        assert cluster.clock.now_ns() - start_ns > 4.9e9

    run(main, servers=({}, {"cache_lag_s": 5}))


def test_a_watch_resumes_after_a_revision() -> None:
    async def main(cluster: Cluster) -> None:
        first = await cluster.client.create(pod("a"))
        await cluster.client.create(pod("b"))
        await cluster.client.bind("default", "a", "", "n1")
        await cluster.client.delete("pods", "b", "default")
        await cluster.clock.sleep(1)
        watch = cluster.watch(version=first.metadata.resourceVersion)
        assert await watch.take(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]

    run(main)


def test_the_deleted_object_is_its_last_state_at_the_revision_of_its_end() -> None:
    async def main(cluster: Cluster) -> None:
        watch = await cluster.watch(version="0").start()
        await cluster.client.create(pod("a"))
        last = await cluster.client.patch("pods", "a", "default", {"metadata": {"labels": {"x": "1"}}})
        deleted = await cluster.client.delete("pods", "a", "default")
        events = [await watch.next() for _ in range(4)]
        seen = core_v1_pb2.Pod.FromString(events[-1].object)
        assert shown(events[-1]) == ("DELETED", "a")
        assert events[-1].resource_version == int(seen.metadata.resourceVersion) == cluster.etcd.revision
        assert seen == deleted
        seen.metadata.resourceVersion = last.metadata.resourceVersion
        assert seen == last

    run(main)


def test_what_begins_to_match_is_added_and_what_ceases_is_deleted() -> None:
    async def main(cluster: Cluster) -> None:
        unbound = await cluster.watch(version="0", fields="spec.nodeName=").start()
        on_n1 = await cluster.watch(version="0", fields="spec.nodeName=n1").start()
        red = await cluster.watch(version="0", labels="colour=red").start()
        pending = await cluster.watch(version="0", fields="status.phase!=Succeeded").start()
        await cluster.client.create(pod("a"))
        bound = await cluster.client.bind("default", "a", "", "n1")
        await cluster.client.patch("pods", "a", "default", {"metadata": {"labels": {"colour": "red"}}})
        await cluster.client.patch("pods", "a", "default", {"metadata": {"labels": {"colour": "blue"}}})
        done = await cluster.client.patch("pods", "a", "default", {"status": {"phase": "Succeeded"}}, "status")
        await cluster.client.delete("pods", "a", "default", 0)
        assert await unbound.take(2) == [BOOKMARK, ("ADDED", "a")]
        event = await unbound.next()
        assert shown(event) == ("DELETED", "a")
        gone = core_v1_pb2.Pod.FromString(event.object)
        assert gone.spec.nodeName == "", "its last state that matched"
        assert gone.metadata.resourceVersion == bound.metadata.resourceVersion, "at the revision of the change"
        assert await on_n1.take(6) == [BOOKMARK, ("ADDED", "a"), *[("MODIFIED", "a")] * 3, ("DELETED", "a")]
        assert await red.take(3) == [BOOKMARK, ("ADDED", "a"), ("DELETED", "a")]
        assert await pending.take(5) == [BOOKMARK, ("ADDED", "a"), *[("MODIFIED", "a")] * 3]
        event = await pending.next()
        assert (shown(event), event.resource_version) == (("DELETED", "a"), int(done.metadata.resourceVersion))

    run(main)


def test_many_watches_share_a_stream() -> None:
    async def main(cluster: Cluster) -> None:
        call = cluster.stub(0, "somebody").Watch()
        await call.write(watch_request(1, "pods", fields="spec.nodeName=n1", version="0"))
        await call.write(watch_request(2, "nodes", fields="metadata.name=n1", version="0"))
        await call.write(watch_request(2, "nodes", version="0"))
        await call.write(watch_request(3, "pods", namespace="kube-system", version="0"))
        await cluster.clock.sleep(1)
        await cluster.client.create(node("n1"))
        await cluster.client.create(node("n2"))
        await cluster.client.create(pod("a", nodeName="n1"))
        await cluster.client.create(pod("b", "kube-system", nodeName="n1"))
        stop = api_pb2.WatchRequest()
        stop.cancel.watch_id = 1
        await call.write(stop)
        stop.cancel.watch_id = 99
        await call.write(stop)
        await cluster.clock.sleep(1)
        await cluster.client.create(pod("c", nodeName="n1"))
        await cluster.client.create(pod("d", "kube-system", nodeName="n1"))
        found: list[tuple[int, str, str]] = []
        while "d" not in {name for _, _, name in found}:
            for event in (await call.read()).events:
                if event.type == api_pb2.WatchEvent.ERROR:
                    assert "there is a watch 2 already" in str(error_of(event.error))
                found.append((event.watch_id, *shown(event)))
        assert [one for one in found if one[1] != "BOOKMARK"] == [
            (2, "ERROR", ""),
            (2, "ADDED", "n1"),
            (1, "ADDED", "a"),
            (1, "ADDED", "b"),
            (3, "ADDED", "b"),
            (3, "ADDED", "d"),
        ]

    run(main)


def test_revisions_that_are_no_longer_known() -> None:
    async def main(cluster: Cluster) -> None:
        first = await cluster.client.create(pod("a"))
        for number in range(20):
            await cluster.client.patch("pods", "a", "default", {"metadata": {"labels": {"n": str(number)}}})
        await cluster.clock.sleep(1)
        event = await cluster.watch(version=first.metadata.resourceVersion).next()
        error = error_of(event.error)
        assert isinstance(error, errors.Gone)
        assert str(error).startswith(f"too old resource version: {first.metadata.resourceVersion} (")
        assert not cluster.refused()
        # The window of another kind is another one.
        nodes = cluster.watch(resource="nodes", version=first.metadata.resourceVersion)
        await nodes.start()
        await cluster.client.create(node("n1"))
        assert await nodes.take(1) == [("ADDED", "n1")]
        recent = cluster.watch(version=str(cluster.etcd.revision - 5))
        assert await recent.take(4) == [("MODIFIED", "a")] * 4

    run(main, servers=({"window_events": 8},))


def test_a_window_of_large_objects_is_shorter() -> None:
    async def main(cluster: Cluster) -> None:
        cache = SERVERS[-1].cache
        await cluster.client.create(pod("a", metadata={"annotations": {"filler": "x" * 100_000}}))
        await cluster.client.create(pod("b"))
        await cluster.client.create(node("n1"))
        first = cluster.etcd.revision
        page = await cluster.client.list("pods", limit=1)
        await cluster.client.patch("nodes", "n1", "", {"metadata": {"labels": {"n": "1"}}})
        for number in range(40):
            await cluster.client.patch("pods", "a", "default", {"metadata": {"labels": {"n": str(number)}}})
            await cluster.clock.sleep(0.1)
            assert sum(collection.past_bytes() for collection in cache.collections.values()) <= 1_000_000
        event = await cluster.watch(version=str(first)).next()
        error = error_of(event.error)
        assert isinstance(error, errors.Gone)
        assert error.reason == "Expired"
        assert str(error).startswith(f"too old resource version: {first} (")
        # The latest changes are there, and those of another kind.
        recent = cluster.watch(version=str(cluster.etcd.revision - 4))
        assert await recent.take(4) == [("MODIFIED", "a")] * 4
        nodes = cluster.watch(resource="nodes", version=str(first))
        assert await nodes.take(1) == [("MODIFIED", "n1")]
        # Lists at old revisions come from the store.
        await cluster.client.delete("pods", "b", "default", grace_period_seconds=0)
        rest = await cluster.client.list("pods", limit=1, continue_token=page.continue_token)
        assert ([each.metadata.name for each in rest.items], rest.resource_version) == (["b"], page.resource_version)

    run(main, servers=({"window_bytes": 1_000_000},))


def test_from_any_revision_everything_comes_or_nothing() -> None:
    async def main(cluster: Cluster) -> None:
        first = int((await cluster.client.create(pod("a"))).metadata.resourceVersion)
        revisions = []
        for number in range(30):
            patch = {"metadata": {"labels": {"n": str(number)}}}
            revisions.append(int((await cluster.client.patch("pods", "a", "default", patch)).metadata.resourceVersion))
        await cluster.clock.sleep(1)
        outcomes = []
        for since in range(first, revisions[-1]):
            watch = cluster.watch(version=str(since))
            event = await watch.next()
            outcomes.append(event.type == api_pb2.WatchEvent.ERROR)
            if not outcomes[-1]:
                expected = [revision for revision in revisions if revision > since]
                found = [event.resource_version, *[(await watch.next()).resource_version for _ in expected[1:]]]
                assert found == expected
            watch.call.cancel()
        assert outcomes == sorted(outcomes, reverse=True)
        assert 8 <= outcomes.count(False) <= 16

    run(main, servers=({"window_events": 8},))


def test_nothing_remains_of_a_client_that_is_gone() -> None:
    async def main(cluster: Cluster) -> None:
        fanout = SERVERS[-1].fanout
        watches = [await cluster.watch(version="0", fields=f"spec.nodeName=n{n % 2}").start() for n in range(4)]
        await cluster.clock.sleep(1)
        assert len(fanout.watchers()) == 4
        for watch in watches[:3]:
            watch.call.cancel()
        await cluster.clock.sleep(1)
        assert len(fanout.watchers()) == 1
        await cluster.client.create(pod("a", nodeName="n1"))
        assert await watches[3].take(2) == [BOOKMARK, ("ADDED", "a")]

    run(main)


def test_a_watch_from_the_future_of_a_lagging_server() -> None:
    """List here, watch there: what the list had does not come again, what came after it does."""

    async def main(cluster: Cluster) -> None:
        await cluster.client.create(pod("a"))
        listed = await cluster.client.list("pods")
        watch = await cluster.watch(1, version=listed.resource_version).start()
        await cluster.client.create(pod("b"))
        assert await watch.take(1) == [("ADDED", "b")]

    run(main, servers=({}, {"cache_lag_s": 5}))


def test_bookmarks_tell_how_far_it_is() -> None:
    async def main(cluster: Cluster) -> None:
        asked = await cluster.watch(version="0", fields="spec.nodeName=n1", bookmarks=True).start()
        not_asked = await cluster.watch(version="0", fields="spec.nodeName=n1", bookmarks=False).start()
        assert await asked.take(1) == [BOOKMARK]
        await cluster.client.create(pod("a"))
        bookmark = await asked.next()
        assert shown(bookmark) == BOOKMARK
        assert bookmark.resource_version == cluster.etcd.revision
        assert cluster.clock.now_ns() == pytest.approx(60e9, abs=1e8)
        await cluster.clock.sleep(300)
        await cluster.client.bind("default", "a", "", "n1")
        assert await asked.take(1) == [("ADDED", "a")], "no other bookmark when nothing happened"
        assert await not_asked.take(1) == [("ADDED", "a")], "and no bookmark before, not even of the initial state"
        resumed = cluster.watch(version=str(bookmark.resource_version), fields="spec.nodeName=n1")
        assert await resumed.take(1) == [("ADDED", "a")]

    run(main)


def test_a_client_that_does_not_read_is_cut_off() -> None:
    async def main(cluster: Cluster) -> None:
        call = cluster.stub(0, "sleeper").Watch()
        await call.write(watch_request(1, version="0"))
        await call.write(watch_request(2, "nodes", version="0"))
        await cluster.clock.sleep(1)
        big = pod("a")
        big.metadata.annotations["text"] = "x" * 50_000
        await cluster.client.create(big)
        for number in range(60):
            await cluster.client.patch("pods", "a", "default", {"metadata": {"labels": {"n": str(number)}}})
        (cut,) = cluster.recorder.of("api.watch_cut")
        assert dict(cut) == {"by": "sleeper", "reason": "slow"}
        events = []
        while sum(event.type == api_pb2.WatchEvent.ERROR for event in events) < 2:
            events += (await call.read()).events
        assert len(events) < 40
        assert isinstance(error_of(events[-1].error), errors.Gone)
        assert {event.watch_id for event in events[-2:]} == {1, 2}
        # The stream lives on: the client lists and watches again.
        await call.write(watch_request(3, version="0"))
        response = await call.read()
        assert [shown(event) for event in response.events] == [("ADDED", "a"), BOOKMARK]
        # Its credit is whole again, too.
        for number in range(8):
            await cluster.client.patch("pods", "a", "default", {"metadata": {"labels": {"n": str(number)}}})
        seen = 0
        while seen < 8:
            response = await call.read()
            assert {event.type for event in response.events} == {api_pb2.WatchEvent.MODIFIED}
            seen += len(response.events)

    run(main, servers=({"backlog_events": 10},))


def test_a_large_initial_state_is_nobodys_fault() -> None:
    async def main(cluster: Cluster) -> None:
        for number in range(40):
            big = pod(f"p{number:02}")
            big.metadata.annotations["text"] = "x" * 50_000
            await cluster.client.create(big)
        await cluster.clock.sleep(1)
        call = cluster.stub(0, "late").Watch()
        await call.write(watch_request(1, version="0"))
        await cluster.clock.sleep(1)
        for number in range(5):
            await cluster.client.patch("pods", "p00", "default", {"metadata": {"labels": {"n": str(number)}}})
        events: list[Any] = []
        while len(events) < 46:
            response = await call.read()
            assert response.ByteSize() < 2 << 20, "in messages that gRPC takes"
            events += response.events
        assert [shown(event)[0] for event in events] == ["ADDED"] * 40 + ["BOOKMARK"] + ["MODIFIED"] * 5
        assert not cluster.recorder.of("api.watch_cut")

    run(main, servers=({"backlog_events": 10},))


def test_an_event_reaches_only_whom_it_concerns() -> None:
    async def main(cluster: Cluster) -> None:
        watches = [
            await cluster.watch(0, f"kubelet{n}", version="0", fields=f"spec.nodeName=n{n}").start() for n in range(50)
        ]
        for watch in watches:
            await watch.next()
        await cluster.client.create(pod("a", nodeName="n7"))
        await cluster.client.create(pod("b", nodeName="n8"))
        assert await watches[7].take(1) == [("ADDED", "a")]
        assert await watches[8].take(1) == [("ADDED", "b")]

    run(main)


# Under random traffic -----------------------------------------------------------------------------------------------

SELECTIONS = (
    ("", "", ""),
    ("kube-system", "", ""),
    ("", "colour=red", ""),
    ("", "", "spec.nodeName=n1"),
    ("", "colour!=red", "spec.nodeName=n0"),
    ("", "", "metadata.name=p3"),
    ("default", "", "status.phase=Running"),
    ("", "", "spec.schedulerName=other"),
)


class Follower:
    """Keeps a copy of what one watch selects, and loses its connection now and then."""

    def __init__(self, cluster: Cluster, number: int, namespace: str, labels: str, fields: str) -> None:
        self.cluster = cluster
        self.name = f"follower{number}"
        self.random = random.Random(number)
        self.what = {"namespace": namespace, "labels": labels, "fields": fields}
        self.state: dict[str, str] = {}
        self.revision = 0
        self.relists = 0
        self.connections = 0

    async def run(self) -> None:
        while True:
            self.connections += 1
            server = self.random.randrange(2)
            watch = self.cluster.watch(server, self.name, version=str(self.revision), bookmarks=True, **self.what)
            await watch.start()
            if self.revision == 0:
                self.state.clear()
            try:
                async with asyncio.timeout(self.random.uniform(0.05, 2)):
                    await self.follow(watch)
            except TimeoutError:
                pass
            watch.call.cancel()

    async def follow(self, watch: Watch) -> None:
        initial = self.revision == 0
        while True:
            event = await watch.next()
            if event.type == api_pb2.WatchEvent.ERROR:
                assert isinstance(error_of(event.error), errors.Gone)
                self.relists += 1
                self.revision = 0
                return
            if event.type == api_pb2.WatchEvent.BOOKMARK:
                initial = False
                self.revision = event.resource_version
                continue
            obj = core_v1_pb2.Pod.FromString(event.object)
            key = f"{obj.metadata.namespace}/{obj.metadata.name}"
            if not initial:
                assert event.resource_version > self.revision, "in order, and never twice"
                self.revision = event.resource_version
                # The type says what the follower must know already.
                assert (key in self.state) == (event.type != api_pb2.WatchEvent.ADDED)
            if event.type == api_pb2.WatchEvent.DELETED:
                del self.state[key]
            else:
                self.state[key] = obj.metadata.resourceVersion


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("window", [10_000, 15])
def test_no_watch_ever_misses_anything(seed: int, window: int) -> None:
    async def main(cluster: Cluster) -> None:
        random_ = random.Random(seed)
        followers = [Follower(cluster, number, *what) for number, what in enumerate(SELECTIONS * 2)]
        following = [asyncio.ensure_future(follower.run()) for follower in followers]
        present: dict[tuple[str, str], Any] = {}
        for _ in range(400):
            await asyncio.sleep(random_.choice([0, 0, 0.001, 0.02]))
            where = random_.choice(["default", "kube-system"]), f"p{random_.randrange(8)}"
            old = present.get(where)
            what = random_.random()
            if old is None:
                spec = {"schedulerName": "other"} if what < 0.3 else {}
                colour = random_.choice(["red", "blue"])
                present[where] = await cluster.client.create(pod(where[1], where[0], labels={"colour": colour}, **spec))
            elif what < 0.2:
                await cluster.client.delete("pods", where[1], where[0], 0)
                del present[where]
            elif what < 0.5 and not old.spec.nodeName:
                node_name = f"n{random_.randrange(2)}"
                present[where] = await cluster.client.bind(where[0], where[1], "", node_name)
            elif what < 0.75:
                patch = {"status": {"phase": random_.choice(["Running", "Pending"])}}
                present[where] = await cluster.client.patch("pods", where[1], where[0], patch, "status")
            else:
                patch = {"metadata": {"labels": {"colour": random_.choice(["red", "blue"])}}}
                present[where] = await cluster.client.patch("pods", where[1], where[0], patch)
        await cluster.clock.sleep(10)
        for follower in followers:
            labels = selectors.parse_labels(follower.what["labels"])
            fields = selectors.parse_fields(follower.what["fields"], "pods")
            expected = {
                f"{namespace}/{name}": obj.metadata.resourceVersion
                for (namespace, name), obj in present.items()
                if follower.what["namespace"] in ("", namespace)
                and labels.matches(obj.metadata.labels)
                and fields.matches(obj)
            }
            assert follower.state == expected, follower.what
        for task in following:
            if task.done():
                task.result()
            task.cancel()
        assert sum(follower.connections for follower in followers) > 100
        assert (sum(follower.relists for follower in followers) > 0) == (window < 100)

    run(main, servers=({"window_events": window}, {"window_events": window, "cache_lag_s": 0.1}), seed=seed)
