"""Experiment switches: alternatives to today's Kubernetes, most of them from its design documents.

Begin with :mod:`kemu.emulated.scheduler.experiments.switches`, the list of all.

    cross_node, lower_priority_affinity     searches for victims that the design documents rejected
    searches                                what such searches cost
    avoided_nodes                           nodes that evicted or rejected a pod of the same workload
    overcommitments                         preemption by the kubelet
    rescheduler                             preemption by an actor of its own
    unfit_nominations                       ``clearLowerNominations: if-unfit``
"""
