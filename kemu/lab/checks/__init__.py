"""What a run proved: its history, the checks that look at every run, and figures. Begin at ``registry``.

    registry      all checks, and one pass over a run log that asks them
    results       the interface of a check, and its result
    attention     for how long something was to be done, and whether its actor could
    limits        what a scenario asks of the detectors, and their defaults
    history       what a run log folds into: pods, nodes, faults, the store's changes, sessions of watches
    consistency   what the store promised and clients were told: acknowledged writes, reads, lists, recoveries
    watches       what watches delivered: completeness, order, delay, content
    nodes         overcommitment, double bindings, two pods with one name, the rate of evictions
    workloads     what controllers decide: pods that are lacking, rollouts, orders, what is counted
    availability  how many pods are ready, and when nothing changes any more
    autoscaling   what the cluster autoscaler decides: sizes of groups, nodes that come and go
    scheduling    priorities, disruption budgets, waiting, loops, schedulers' caches
    counters      what every verdict counts; ``costs``, what the run cost

Reads run logs and objects, never actors.

    scales        how many pods the owners of some pods want together, as the disruption controller computes it
"""
