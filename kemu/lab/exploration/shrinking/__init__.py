"""Shrinking: from a failing run to a scenario that fits on one screen.

shrinker         :func:`shrinker.shrink`, the order of the steps, and what comes out
steps            the smallest scenario so far, and the steps from there
trials           does a candidate fail in the same way? The budget, and candidates that run at the same time
candidates       scenarios as documents and holds, and what goes with what is removed
anew             smaller scenarios with other delays; holds link by link
subsets          which of many things are needed, found with few questions
documents        documents without faults, pods, nodes, schedulers, settings
freezing         latencies left to chance, as holds
readable_holds   holds until something happens rather than for a time
twins            the run that goes well beside the one that fails
texts            YAML that people like to read
"""
