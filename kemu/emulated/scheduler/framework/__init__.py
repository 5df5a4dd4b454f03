"""The scheduling framework: all that the author of a plugin imports comes from here.

    from kemu.emulated.scheduler.framework import Cycle, NodeFilterPlugin, NodeInfo, Status, unschedulable

Begin with :mod:`kemu.emulated.scheduler.framework.interfaces`: the extension points, and what plugins are given.

    interfaces    extension points, Handle, Cycle         statuses   what a plugin answers
    events        what may make a pod schedulable         results    candidates, the result of PostFilter
    answers       what becomes of wrong answers
    permits       pods that wait for their permit         registries which plugins a profile may name
    run_times     how long pods still run, where a scenario lets plugins know it
    signers       what plugins sign of a pod
"""

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.nodes import NodeInfo, Taint
from kemu.emulated.scheduler.cache.pods import PodInfo, Template
from kemu.emulated.scheduler.framework.events import Event, Hint
from kemu.emulated.scheduler.framework.interfaces import (
    MAX_SCORE,
    SKIP,
    ArgumentError,
    BindPlugin,
    Cycle,
    Diagnosis,
    FilterPlugin,
    Handle,
    MaskFilterPlugin,
    Narrowed,
    NodeFilterPlugin,
    NodeScorePlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ReservePlugin,
    Scope,
    ScorePlugin,
    SignPlugin,
    Skip,
    VictimOrderPlugin,
)
from kemu.emulated.scheduler.framework.permits import WaitingPod
from kemu.emulated.scheduler.framework.results import Candidate, PostFilterResult
from kemu.emulated.scheduler.framework.run_times import RunTimes
from kemu.emulated.scheduler.framework.signers import Fragments
from kemu.emulated.scheduler.framework.statuses import (
    ERROR,
    PENDING,
    UNRESOLVABLE,
    UNSCHEDULABLE,
    WAIT,
    Status,
    unresolvable,
    unschedulable,
)

__all__ = [
    "ERROR",
    "MAX_SCORE",
    "PENDING",
    "SKIP",
    "UNRESOLVABLE",
    "UNSCHEDULABLE",
    "WAIT",
    "ArgumentError",
    "BindPlugin",
    "Candidate",
    "Cluster",
    "Cycle",
    "Diagnosis",
    "Event",
    "FilterPlugin",
    "Fragments",
    "Handle",
    "Hint",
    "MaskFilterPlugin",
    "Narrowed",
    "NodeFilterPlugin",
    "NodeInfo",
    "NodeScorePlugin",
    "PermitPlugin",
    "Plugin",
    "PodInfo",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "QueueSortPlugin",
    "ReservePlugin",
    "RunTimes",
    "Scope",
    "ScorePlugin",
    "SignPlugin",
    "Skip",
    "Status",
    "Taint",
    "Template",
    "VictimOrderPlugin",
    "WaitingPod",
    "unresolvable",
    "unschedulable",
]
