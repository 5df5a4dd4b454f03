"""From a seed and a number to a scenario.

drawn       puts the parts together: :func:`drawn.draw`
dice        named random streams, one for each part, so that one part more does not change another
canvases    what the parts of a scenario have to know of each other
clusters    nodes and the control plane
templates   pods, and templates of pods
objects     workload objects, budgets, quotas, claims
happenings  events
chaos       faults
dumps       objects as ``kubectl get -o yaml`` prints them
"""
