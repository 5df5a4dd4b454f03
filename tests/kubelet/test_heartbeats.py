"""Standing heartbeats: the schedule, what is read of it, and when a kubelet sends them after all."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from kemu.emulated.objects import heartbeats, meta
from kemu.emulated.objects.heartbeats import Schedule, Statement
from kemu.messages.k8s import coordination_v1_pb2, core_v1_pb2
from tests.kubelet.cluster import Cluster

SECOND = 1_000_000_000
RENEWALS = Schedule(3 * SECOND, 10 * SECOND, SECOND * 4 // 10, seed=7)
ALWAYS: dict[str, Any] = {"restless": [], "arrives_ns": 3_000_000}


def test_pauses_are_those_of_a_jittered_interval() -> None:
    times = [RENEWALS.time(number) for number in range(2001)]
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert min(pauses) >= 10 * SECOND
    assert max(pauses) <= 10.4 * SECOND
    assert len(set(pauses)) > 1900
    # Uniform between the two, on either half of a pair.
    for half in (pauses[::2], pauses[1::2]):
        assert 10.19 * SECOND < sum(half) / len(half) < 10.21 * SECOND
        assert 200 < sum(pause < 10.1 * SECOND for pause in half) < 300
    other = Schedule(3 * SECOND, 10 * SECOND, SECOND * 4 // 10, seed=8)
    assert [other.time(number) for number in range(9)] != times[:9]


def test_numbers_and_times_agree() -> None:
    for schedule in (RENEWALS, Schedule(5, 300), Schedule(0, 1)):
        for number in range(200):
            when = schedule.time(number)
            assert schedule.last_before(when) == number - 1
            assert schedule.last_before(when + 1) == number
            assert schedule.next_from(when) == when
            assert schedule.next_from(when + 1) == schedule.time(number + 1)
    assert RENEWALS.last_before(0) == -1


def test_a_heartbeat_is_seen_when_it_has_arrived_and_only_before_the_end() -> None:
    when = RENEWALS.time(4)
    statement = Statement(RENEWALS, until=None, arrives=5)
    assert statement.last_seen(when + 4) == RENEWALS.time(3)
    assert statement.last_seen(when + 5) == when
    assert statement.last_seen(when + 5, later=1) == RENEWALS.time(3)
    assert statement.last_seen(when + 6, later=1) == when
    assert statement.last_seen(0) == 0
    for until, latest in ((when, 3), (when + 1, 4)):
        assert Statement(RENEWALS, until, 5).last_seen(10**15) == RENEWALS.time(latest)


def test_what_a_lease_shows() -> None:
    lease = coordination_v1_pb2.Lease()
    lease.metadata.name = "n1"
    meta.set_time(lease.spec.renewTime, 5000)

    def shown(now: int) -> int:
        wire = heartbeats.show(coordination_v1_pb2.Lease, lease.SerializeToString(), now)
        return meta.unix_ns(coordination_v1_pb2.Lease.FromString(wire).spec.renewTime)

    assert shown(10**12) == 5000
    heartbeats.state(lease, Statement(RENEWALS, None, 0))
    when = RENEWALS.time(1)
    assert shown(RENEWALS.first - 1) == 5000
    assert shown(when) == when - when % 1000
    # What was really written is never shown older.
    meta.set_time(lease.spec.renewTime, when + SECOND)
    assert shown(when) == when + SECOND - when % 1000
    heartbeats.state(lease, None)
    assert not lease.metadata.annotations


@pytest.mark.parametrize("text", ["", "often", "{}", "[]", '{"first": 1, "every": 0, "until": null, "arrives": 1}'])
def test_a_text_that_is_no_statement_states_nothing(text: str) -> None:
    node = core_v1_pb2.Node()
    node.metadata.annotations[heartbeats.ANNOTATION] = text
    assert heartbeats.stated(node) is None
    condition = node.status.conditions.add(type="Ready")
    meta.set_time(condition.lastHeartbeatTime, 7 * SECOND)
    wire = node.SerializeToString(deterministic=True)
    assert heartbeats.show(core_v1_pb2.Node, wire, 10**15) == wire


async def _times(cluster: Cluster) -> tuple[int, int, str, str]:
    """Renewal and heartbeat in ns of virtual time, and the versions of both objects."""
    lease = await cluster.client.get("leases", "n1", "kube-node-lease")
    node = await cluster.client.get("nodes", "n1")
    ready = meta.get_condition(node.status.conditions, "Ready")
    assert ready is not None
    epoch_ns = cluster.clock.epoch_unix_s * SECOND
    return (
        meta.unix_ns(lease.spec.renewTime) - epoch_ns,
        meta.unix_ns(ready.lastHeartbeatTime) - epoch_ns,
        lease.metadata.resourceVersion,
        node.metadata.resourceVersion,
    )


def test_a_reader_sees_the_heartbeats_that_nobody_sends() -> None:
    seen: dict[bool, list[tuple[int, int, str, str]]] = {}

    for stands in (False, True):
        cluster = Cluster(seed=3)

        async def main(cluster: Cluster) -> list[tuple[int, int, str, str]]:
            found = []
            for number in range(250):
                await cluster.at(number * 3.7)
                found.append(await _times(cluster))
            return found

        seen[stands] = cluster.play(main, standing=ALWAYS if stands else None)
    assert [row[:2] for row in seen[True]] == [row[:2] for row in seen[False]]
    assert len({row[2:] for row in seen[True]}) == 1
    assert len({row[2] for row in seen[False]}) > 85
    assert len({row[3] for row in seen[False]}) == 4


def test_heartbeats_are_sent_in_restless_times() -> None:
    restless = {"restless": [[100 * SECOND, 160 * SECOND], [400 * SECOND, None]], "arrives_ns": 3_000_000}

    async def main(cluster: Cluster) -> list[tuple[float, str]]:
        found = []
        for second in range(0, 500, 2):
            await cluster.at(second)
            found.append((second, (await _times(cluster))[2]))
        return found

    found = Cluster().play(main, standing=restless)
    changes = [second for (_, old), (second, new) in itertools.pairwise(found) if old != new]
    assert all(100 <= second <= 174 or second >= 400 for second in changes)
    # The last one before the calm states it anew.
    assert sum(second < 400 for second in changes) in (6, 7, 8)
    assert sum(second >= 400 for second in changes) in (9, 10)


def test_a_changed_status_is_reported_at_once_and_states_the_next_reports_anew() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.at(50)
        node = await cluster.client.get("nodes", "n1")
        now_ns = cluster.clock.epoch_unix_s * SECOND + cluster.clock.now_ns()
        meta.set_condition(node.status.conditions, "Ready", "Unknown", "NodeStatusUnknown", "silent", now_ns)
        await cluster.client.update_status(node)
        await cluster.at(61)
        renewed, reported, _, version = await _times(cluster)
        assert renewed >= 50 * SECOND
        assert reported >= 50 * SECOND
        await cluster.at(299)
        assert (await _times(cluster))[1] == reported
        await cluster.at(361)
        _, later, _, same = await _times(cluster)
        assert 350 * SECOND <= later <= reported + 301 * SECOND
        assert same == version

    Cluster().play(main, standing=ALWAYS)


def test_a_lease_that_cannot_be_written_is_sent_again_until_it_can() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.at(99)
        await cluster.runtime.partition("cut", ["kubelet/n1"], ["apiserver/0"])
        await cluster.at(200)
        assert (await _times(cluster))[0] < 100 * SECOND
        await cluster.runtime.heal("cut")
        await cluster.at(260)
        renewed, _, version, _ = await _times(cluster)
        assert renewed > 240 * SECOND
        await cluster.at(600)
        renewed, _, same, _ = await _times(cluster)
        assert renewed > 585 * SECOND
        assert same == version

    # The partition is longer than what was foreseen.
    Cluster().play(main, standing={"restless": [[90 * SECOND, 150 * SECOND]], "arrives_ns": 3_000_000})


@pytest.mark.parametrize("until", [None, 1_700_000_000_000_000_001])
def test_a_statement_is_written_as_json(until: int | None) -> None:
    statement = Statement(Schedule(first=3, every=10, jitter=2, seed=5), until, 7)
    wanted = {"first": 3, "every": 10, "jitter": 2, "seed": 5, "until": until, "arrives": 7}
    assert statement.encode() == json.dumps(wanted)
