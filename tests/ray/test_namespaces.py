"""``deploy/ray-cluster.yaml`` on machines with addresses and clocks of their own: network namespaces of this one."""

from __future__ import annotations

import pytest

from tests.ray import namespaces

SCENARIO = "seeds/multi-scheduler-race"

pytestmark = [pytest.mark.ray, pytest.mark.timeout(900)]


@pytest.mark.nightly("a minute; tests.ray.namespaces runs every seed so, and tests/ray tries TLS and clocks one by one")
def test_a_seed_holds_between_machines_whose_clocks_disagree() -> None:
    """Cells listen at the addresses of their machines, and speak TLS there."""
    why = namespaces.obstacle()
    if why:
        print(f"not tested here: {why}")
        return
    with namespaces.machines() as machines, namespaces.cluster(machines) as environment:
        outcome = namespaces.run(machines[0], machines[1:], environment, SCENARIO, 5)
        if outcome.code:
            outcome = namespaces.run(machines[0], machines[1:], environment, SCENARIO, 2)
    assert outcome.verdict == "holds", outcome.text
    secure = {where.split()[0] for where, spoken in outcome.listening.items() if spoken.startswith("TLS")}
    assert len(secure) > 1, outcome.listening
    assert not namespaces._pids(machines)


def test_what_is_started_is_what_the_file_says() -> None:
    head, worker = namespaces.Machine("a", "10.0.0.1", 0), namespaces.Machine("b", "10.0.0.2", 2)
    (first,) = namespaces.start_commands(head, head, "/tmp/x")
    (second,) = namespaces.start_commands(worker, head, "/tmp/x")
    assert "--head" in first
    assert '"kemu-store": 1' in first
    assert "--address=10.0.0.1:6379" in second
    assert '"kemu-kubelets": 1' in second
    assert "ray stop" not in first + second
    assert "~" not in first + second
