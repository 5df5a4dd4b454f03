"""Scenarios: the YAML format that users write, from the file to the actor that plays its user.

Reading one begins at ``loader``:

    loader                                from a file to a scenario or to all of its mistakes; calls what follows
    documents, shapes, schema, keys/      YAML with places; what values may look like; the table of keys
    values, matrices                      notations: durations, rates, quantities; paths and variants
    clusters, controllers, manifests      what there is when the clock starts
    timelines, workloads, openb           what happens over time: events, faults, streams of pods, a recorded trace
    expectations, references              what the run must show; whether names lead anywhere
    scenarios                             the result, as data

Playing it begins at ``runner``:

    runner                                builds the cluster, lets time pass, leaves a run folder
    plans, machines, heartbeats           from data to actors; machines come and go; which heartbeats are only stated
    user, operators, faults               who does what happens: people and programs, the machines' owner, chaos
    verdicts, replays                     what came of it; the same run again
"""
