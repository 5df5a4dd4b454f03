"""``queues`` of a scenario: ClusterQueues, cohorts and LocalQueues with the keys that Kueue gives them (v1beta2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.settings.declared import REQUIRED, Complaint, Section, setting
from kemu.emulated.settings.shapes import QUANTITY, Choice, ListOf, MapOf, Number, Switch, Text, Whole

NAME = "kueue"
_POLICIES = Choice(("Never", "LowerPriority", "LowerOrNewerEqualPriority", "Any"))


@dataclass(frozen=True, kw_only=True)
class Resource:
    """How much of a resource there is in one flavor."""

    name: str = setting(Text(), "The resource.", REQUIRED)
    nominal_quota: str = setting(QUANTITY, "What the queue or cohort has of its own.", REQUIRED)
    borrowing_limit: str | None = setting(QUANTITY, "How much more it may use of what others have; all by default.")
    lending_limit: str | None = setting(QUANTITY, "How much of its own others may use; all by default.")


@dataclass(frozen=True, kw_only=True)
class Flavor:
    """A kind of machine on which the quota is."""

    name: str = setting(Text(), "Its name.", REQUIRED)
    resources: list[Resource] = setting(ListOf(Section(Resource), 1), "Its resources.", REQUIRED)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Resources that a workload gets in one flavor: the first one in which they fit."""

    covered_resources: list[str] = setting(ListOf(Text(), 1), "The resources.", REQUIRED)
    flavors: list[Flavor] = setting(ListOf(Section(Flavor), 1), "Where they are, in the order of trial.", REQUIRED)

    def complaints(self) -> Iterator[Complaint]:
        for number, flavor in enumerate(self.flavors):
            if not isinstance(flavor, Flavor) or not all(isinstance(one, Resource) for one in flavor.resources):
                continue  # It has mistakes of its own.
            if [one.name for one in flavor.resources] != self.covered_resources:
                yield Complaint(
                    ("flavors", number, "resources"), "must be those of coveredResources, in the same order", alone=True
                )


@dataclass(frozen=True, kw_only=True)
class Borrowing:
    """When a workload may preempt in other queues although its own will borrow."""

    policy: str = setting(Choice(("Never", "LowerPriority")), "Whom.", "Never")
    max_priority_threshold: int | None = setting(Whole(), "Only workloads of at most this priority.")


@dataclass(frozen=True, kw_only=True)
class Preemption:
    """Whom the workloads of a queue may preempt."""

    within_cluster_queue: str = setting(_POLICIES, "In their own queue.", "Never")
    reclaim_within_cohort: str = setting(_POLICIES, "In queues of the cohort that borrow.", "Never")
    borrow_within_cohort: Borrowing | None = setting(Section(Borrowing), "There, if its own queue will borrow.")

    def complaints(self) -> Iterator[Complaint]:
        if self.within_cluster_queue == "Any":
            yield Complaint(("withinClusterQueue",), "must be Never, LowerPriority or LowerOrNewerEqualPriority")
        borrow = self.borrow_within_cohort
        if borrow is not None and borrow.policy != "Never" and self.reclaim_within_cohort == "Never":
            yield Complaint(("reclaimWithinCohort",), "must not be Never beside borrowWithinCohort")


@dataclass(frozen=True, kw_only=True)
class Weight:
    """What counts for fair sharing."""

    weight: float = setting(Number(0), "How much of what is borrowed is due to it, against others; {default}.", 1)


@dataclass(frozen=True, kw_only=True)
class Cohort:
    """Queues and cohorts that lend to each other."""

    name: str = setting(Text(), "Its name.", REQUIRED)
    parent_name: str = setting(Text(".*"), "The cohort above it.", "")
    resource_groups: list[Group] = setting(ListOf(Section(Group)), "Quota of its own.", [])
    fair_sharing: Weight | None = setting(Section(Weight), "Its weight.")


@dataclass(frozen=True, kw_only=True)
class ClusterQueue:
    """Quota, and the order in which workloads get it."""

    name: str = setting(Text(), "Its name.", REQUIRED)
    cohort_name: str = setting(Text(".*"), "The cohort that it belongs to.", "")
    resource_groups: list[Group] = setting(ListOf(Section(Group), 1), "Its quota.", REQUIRED)
    preemption: Preemption = setting(Section(Preemption), "Whom its workloads may preempt.", {})
    queueing_strategy: str = setting(
        Choice(("BestEffortFIFO", "StrictFIFO")),
        "Whether a workload that does not fit lets others pass.",
        "BestEffortFIFO",
    )
    fair_sharing: Weight | None = setting(Section(Weight), "Its weight.")


@dataclass(frozen=True, kw_only=True)
class LocalQueue:
    """The name by which Jobs of a namespace ask for a ClusterQueue."""

    name: str = setting(Text(), "Its name.", REQUIRED)
    namespace: str = setting(Text(), "Where its Jobs are.", "default")
    cluster_queue: str = setting(Text(), "Where they wait.", REQUIRED)


@dataclass(frozen=True, kw_only=True)
class FairSharing:
    """Queues share what they borrow by their weights."""

    preemption_strategies: list[str] = setting(
        ListOf(Choice(("LessThanOrEqualToFinalShare", "LessThanInitialShare")), 1),
        "When a workload may preempt one of a queue with a larger share, one after the other.",
        ["LessThanOrEqualToFinalShare", "LessThanInitialShare"],
    )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """``queues`` of a scenario."""

    cluster_queues: list[ClusterQueue] = setting(ListOf(Section(ClusterQueue), 1), "The ClusterQueues.", REQUIRED)
    cohorts: list[Cohort] = setting(
        ListOf(Section(Cohort)), "Cohorts with quota, a weight or a parent; others need not stand here.", []
    )
    local_queues: list[LocalQueue] = setting(
        ListOf(Section(LocalQueue)), "By default each ClusterQueue has one of its name in the namespace default.", []
    )
    fair_sharing: FairSharing | None = setting(Section(FairSharing), "Fair sharing; without it, by priority.")
    feature_gates: dict[str, bool] = setting(
        MapOf(Switch()), "PrioritySortingWithinCohort: priority counts among workloads of several queues; true.", {}
    )
    sticky_preemptors: bool = setting(
        Switch(),
        "Whether a workload that has preempted stays at the head of its queue (since Kueue 0.13.6); {default}.",
        True,
    )
    victims_go_behind: bool = setting(
        Switch(),
        "Whether a victim of borrowWithinCohort queues anew where priorities are not sorted by, since Kueue 0.8.1; "
        "{default}.",
        True,
    )
    borrows_when_fair: bool = setting(
        Switch(),
        "Whether borrowWithinCohort counts with fair sharing, too, as in Kueue 0.9 and 0.10.0; {default}.",
        False,
    )

    spares_own: bool = setting(
        Switch(),
        "Whether with fair sharing a victim of the own queue is spared if the others suffice, as in Kueue; {default}. "
        "Off, kueue#14543 does not go round.",
        True,
    )

    def complaints(self) -> Iterator[Complaint]:
        names = [one.name for one in self.cluster_queues]
        cohorts = {one.name: one.parent_name for one in self.cohorts}
        for number, one in enumerate(self.local_queues):
            if one.cluster_queue not in names:
                yield Complaint(
                    ("localQueues", number, "clusterQueue"), f"there is no ClusterQueue {one.cluster_queue}"
                )
        for key, named in (("clusterQueues", names), ("cohorts", [one.name for one in self.cohorts])):
            for number, name in enumerate(named):
                if name in named[:number]:
                    yield Complaint((key, number, "name"), f"{name} stands there twice")
        for number, cohort in enumerate(self.cohorts):
            above, seen = cohort.parent_name, {cohort.name}
            while above and above not in seen:
                seen.add(above)
                above = cohorts.get(above, "")
            if above:
                yield Complaint(("cohorts", number, "parentName"), "is below the cohort itself")
        for name in self.feature_gates:
            if name != "PrioritySortingWithinCohort":
                yield Complaint(("featureGates", name), "is no gate that acts here", key=True)


def amount(resource: str, text: str) -> int:
    """Millicores, or whole units."""
    return quantities.milli(text) if resource == "cpu" else quantities.value(text)
