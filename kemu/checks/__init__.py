"""What a run proved: its history, the checks that always run on it, and counters. Begin at ``registry``.

    registry      all checks, and one pass over a run log that asks them
    history       folds the log; ``facts`` is what it consists of, ``counters`` what is counted
    results       the shape that all checks and their results share; ``limits`` is what a scenario asks of them
    budgets caches identities loops nodes priorities rates waiting watches writes      the checks
    lineages      which pod takes whose place

Reads run logs and objects, never actors.
"""
