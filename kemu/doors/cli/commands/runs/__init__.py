"""Commands about single runs: make one, repeat or recover it, explain and tell it; the shipped scenarios.

imports  ``kemu import``: make a scenario from the dumps of a cluster
metrics  ``kemu metrics``: a run as Prometheus would have seen it, and which alerts would have fired
replay   ``kemu replay``: run a recorded run again, and name the first event that differs
run      ``kemu run``: run a scenario and print the result
story    ``kemu story``: what happened in a run, in order; grouped so that it fits the screen, and opened by filters
trace    ``kemu trace``: the spans of a pod as a waterfall, all traces sent to a collector
"""
