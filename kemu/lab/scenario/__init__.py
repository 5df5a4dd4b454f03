"""Scenarios: the YAML format that users write, from the file to the actor that plays its user.

format/        the format: documents with places, notations, shapes of values, the table of keys (``schema``)
scenarios      a scenario as data; ``expectations``: what its run must show
catalog        the scenarios that come with kemu
loading/       from a file to a scenario, or to all of its mistakes at once: begin at ``loader``
arrivals       when the pods of a workload come
playing/       builds the cluster, lets time pass, leaves a run folder: begin at ``runner``
verdicts       what came of it
"""
