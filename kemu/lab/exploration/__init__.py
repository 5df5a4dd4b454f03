"""Exploration: many runs of a scenario, to find the ones that fail. A run is a scenario, a seed and holds.

searches       a search from beginning to end, as ``kemu explore`` makes it
executions     one run, in memory; ``causes``: what makes two failures the same one
plans          what a strategy decides about a run; ``strategies`` are the ways of deciding
campaigns      runs as strategies plan them, in generations; ``results`` is what is kept of each, ``files`` on disk
clusters       the failures of a campaign by check and cause; ``coverage``: what its runs have shown
canaries       a planted bug that every campaign must find
workers        processes that carry out tasks, as runs of a search and cells of a sweep; ``processes``: what is in them
branches       runs on a large cluster that begin alike go on from one set-up
runs           carries out one planned run; ``sources`` has the scenario, ``meters`` break off what takes too long
shrinking      from a failing run to a scenario that fits on one screen
"""
