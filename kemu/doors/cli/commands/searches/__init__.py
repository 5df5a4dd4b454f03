"""Commands that make many runs: searches for failures, shrinking, sweeps.

compare           ``kemu compare``: a scenario beside the same with changes, and what got better
explore           ``kemu explore``: search for runs of a scenario that fail, and say why they do
explore_reports   what ``kemu explore`` shows: how far it is, and what it has found
fuzz              ``kemu fuzz``: draw whole scenarios, run them, and say which fail
hunt              ``kemu hunt``: find bugs in a controller that is a program of its own
shrink            ``kemu shrink``: make a scenario that fails smaller, or go on where ``kemu explore`` had to stop
sweep             ``kemu sweep``: run all variants of an experiment with all its seeds, and judge its claims
"""
