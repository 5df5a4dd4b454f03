"""Scenarios: the YAML format that users write, from the file to the actor that plays its user.

format/        the format: documents with places, notations, shapes of values, the table of keys (``schema``)
scenarios      a scenario as data; ``expectations``: what its run must show
catalog        the scenarios that come with kemu
loading/       from a file to a scenario, or to all of its mistakes at once: begin at ``loader``
arrivals       when the pods of a workload come
playing/       builds the cluster, lets time pass, leaves a run folder: begin at ``runner``
verdicts       what came of it
evidence       what a run says of metrics, refused requests, Event objects, objects and faults
forms          a scenario from whatever a program has: a file, the name of a shipped one, YAML text or a dictionary
headlines      what a run came to, in one sentence; it never sounds like a success where nothing was expected
sentences      expectations as sentences, for people: ``c is bound to node-1 between 60 s and 80 s``
"""
