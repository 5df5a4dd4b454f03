"""Queues of Jobs with quotas, as Kueue has them: the actor ``controller/kueue``. Begin at ``controller``.

    controller    resumes Jobs that are admitted, suspends those that are preempted
    cycles        whose turn it is, in which flavors it fits
    preemption    who has to go, without and with fair sharing
    workloads     workloads and ClusterQueues
    quotas        what is used and what is free in a tree of cohorts; shares
    settings      ClusterQueues, cohorts, LocalQueues

Mirrors ``sigs.k8s.io/kueue`` v0.17.0 (``pkg/scheduler``, ``pkg/cache``), without admission checks, topologies and
partial admission.
"""
