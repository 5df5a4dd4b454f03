"""Leader election beyond what was recorded: settings, identities, processes that start again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.client import elections
from kemu.emulated.scheduler.configuration import configurations
from kemu.lab.scenario import catalog
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.runtime.runlog.frames import FILE_NAME, Reader


@pytest.mark.parametrize(
    ("found", "path"),
    [
        ({"leaseDuration": "10s"}, "leaderElection.leaseDuration"),
        ({"retryPeriod": "9s"}, "leaderElection.renewDeadline"),
        ({"leaseDuration": "900ms", "renewDeadline": "500ms", "retryPeriod": "100ms"}, "leaderElection.leaseDuration"),
    ],
)
def test_times_that_client_go_refuses_are_refused(found: dict[str, str], path: str) -> None:
    with pytest.raises(configurations.ConfigurationError) as error:
        configurations.configuration_of({"leaderElection": found})
    assert error.value.path == path
    assert configurations.configuration_of({"leaderElection": {**found, "leaderElect": False}}).election is None


def test_who_says_nothing_is_not_elected_and_who_says_something_is() -> None:
    assert configurations.configuration_of({}).election is None
    found = configurations.configuration_of({"leaderElection": {"resourceName": "mine", "renewDeadline": "0s"}})
    assert found.election == elections.Settings("mine")


def run(tmp_path: Path, name: str, **overrides: Any) -> list[tuple[float, str, str, dict[str, Any]]]:
    """The events of one scenario's first variant."""
    scenario = loader.load(catalog.find(name), overrides={"matrix": {}, "expect": [], **overrides})
    runner.run_all(scenario, runner.Options(out=tmp_path, runtime="sim"))
    with Reader(tmp_path / FILE_NAME) as log:
        return [(at / 1e9, actor, kind, dict(data)) for at, actor, kind, data in log]


def test_every_process_has_an_identity_of_its_own(tmp_path: Path) -> None:
    """A leader that comes back does not take the lease of its former self for its own."""
    crash = {"at": "20s", "for": "1s", "crash": {"actor": "scheduler/default-scheduler/0"}}
    events = run(tmp_path, "elections/failover", chaos=[crash], schedulers=[
        {"name": "default-scheduler", "config": {"leaderElection": {}}}
    ])  # fmt: skip
    terms = [(at, data) for at, actor, kind, data in events if kind == "election.acquired" and "scheduler" in actor]
    assert [data["transitions"] for _, data in terms] == [0, 1]
    assert terms[0][1]["identity"] != terms[1][1]["identity"]
    assert 21 + 15 <= terms[1][0] < 21 + 15 + 4.5


def test_a_candidate_with_cold_informers_lists_when_it_leads(tmp_path: Path) -> None:
    """``delayCacheUntilActive``; and the controllers always."""
    config = {"leaderElection": {}, "delayCacheUntilActive": True}
    scheduler = {"name": "default-scheduler", "replicas": 2, "config": config}
    events = run(tmp_path, "elections/failover", schedulers=[scheduler])
    for standby in ("scheduler/default-scheduler/1", "controller/replicaset/1"):
        lists = [at for at, actor, kind, _ in events if kind == "watch.listed" and actor == standby]
        (leads,) = [at for at, actor, kind, _ in events if kind == "election.acquired" and actor == standby]
        assert lists
        assert min(lists) >= leads > 20
