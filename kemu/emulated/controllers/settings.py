"""What every controller can be told in a scenario, under ``controllers.<name>``, beside settings of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kemu.emulated.client import elections, limits
from kemu.emulated.settings.declared import Section, setting
from kemu.emulated.settings.distributed import TIME
from kemu.emulated.settings.shapes import Switch, Whole


@dataclass(frozen=True, kw_only=True)
class NoSettings:
    """The settings of a controller that has none of its own."""


@dataclass(frozen=True, kw_only=True)
class Controller:
    """One controller."""

    lag: Any = setting(TIME, "From what it hears until it acts.")
    own: Any = setting(Section(NoSettings), "Its own settings.", {}, inline=True)
    replicas: int = setting(Whole(1), "How many processes; of several, one leads. {default} by default.", 1)
    leader_election: elections.LeaderElection | None = setting(
        Section(elections.LeaderElection),
        "How a leader is elected; a single process leads without an election by default.",
    )

    client_connection: limits.ClientConnection | None = setting(
        Section(limits.ClientConnection),
        "How many requests a second it sends. Stated, it always acts; for the defaults see timing.clientLimits.",
    )

    def election(self, name: str) -> elections.Settings | None:
        """How the replicas of the controller of that name elect a leader; None: not at all, which is the default of a
        single replica."""
        stated = self.leader_election
        if stated is None:
            return elections.LeaderElection().of(name) if self.replicas > 1 else None
        return stated.of(name) if stated.leader_elect else None

    def actors(self, name: str) -> list[str]:
        """``controller/<name>``, or of several replicas ``controller/<name>/<n>``."""
        several = [f"controller/{name}/{n}" for n in range(self.replicas)]
        return several if self.replicas > 1 else [f"controller/{name}"]


@dataclass(frozen=True, kw_only=True)
class JobGates:
    workload_with_job: bool = setting(
        Switch(), "Whether the pods of an indexed Job are a gang, with a PodGroup.", False, key="WorkloadWithJob"
    )


@dataclass(frozen=True, kw_only=True)
class Jobs:
    """Of the controller of Jobs."""

    feature_gates: JobGates = setting(Section(JobGates), "Feature gates of this controller.", {})
