"""Strategies: each a way of choosing what the next run does. Begin with ``registry``, the table of them all.

The interface is ``kemu.lab.exploration.plans.Strategy``.

seeds                          another seed for each run, and nothing else
uniform, pct, pos, walk        how long each message takes
observe_late, crash, feedback  which messages come late, when actors fail, and what to make of runs that went new ways
priorities                     the algorithm behind pct
subjects                       the scenario that is explored, and what its ordinary runs consist of
situations                     holds that would have changed something in an ordinary run; when a fault would
swarms                         settings of a whole run, drawn from the seed: latencies, replicas, sizes
stale                          API servers answer from the past, and actors hear it from them: after a restart
"""
