"""The scheduler: framework, plugins, queue, preemption and the actor that runs them.

Read :mod:`kemu.scheduler.framework.interfaces` first (``statuses``, ``events``, ``plugins/``), then
:mod:`kemu.scheduler.cycle.decisions` (one decision, without time) and :mod:`kemu.scheduler.scheduler` (the actor,
around :mod:`kemu.scheduler.loop`).

    cluster, nodes, pods, columns, counts     the cache, and what it derives for all nodes at once
    terms, evaluations, simulations           affinity compiled; verdicts that stay true; what if
    queues, nominations, feeds                who waits, for what, and who tells them
    bindings, permits, reports, timings       after a decision; what the world hears; what work costs in virtual time
    preemption, evictions                     whom to preempt, and to tell them
    configurations, profiles, arguments       KubeSchedulerConfiguration (``fields``, ``phases``)
    extenders, extender_clients               processes that are asked, from both sides
    policies                                  experiment switches: cross_node, lower_priority_affinity, avoided_nodes,
                                              overcommitments, rescheduler, and what searches cost (``searches``)
    audits, rebuilds, cases                   whether all of it is right: for checks, benchmarks, conformance
"""
