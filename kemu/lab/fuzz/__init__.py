"""Fuzzing: whole scenarios are drawn, run and judged, over everything that the format has.

campaigns    a search from beginning to end, as ``kemu fuzz`` makes it
features     what a scenario may have: the axes of the draw, and the plan that lets all pairs of them meet
drawing      from a seed and a number to a scenario
trials       one scenario: its run, its run again, its run under a relation, and what is wrong with them
oracles      what must hold at the end of every run, beside the checks
relations    changes of a scenario that change nothing of what comes of it
facts        a scenario that is over, as oracles and relations look at it
shrinking    from a failing scenario to one that a person can read
fresh        the same scenarios in fresh processes under other hash seeds
clients      scenarios whose clients come from outside, through the gateway in virtual time
coverage     which features, pairs, events and reasons were met
"""
