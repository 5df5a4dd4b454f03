"""kemu for programs: notebooks, tests, scripts. All of it is reached as ``kemu.run``, ``kemu.Run``, … (docs/api.md).

runs             run a scenario; a run to ask questions of
sweeps           run an experiment: variants with many seeds, claims that are judged
results          the tables of results as pandas, polars or Arrow
explorations     search for the run that fails
hunts            search for bugs in a controller that is a program of its own
live_clusters    a cluster to program against; ``simulations``: virtual time around it
views            what became of a pod, a wait, a finding, as plain data; ``reports``: what is said of a run that fails
scenario_forms   a scenario from whatever a program has: a file, a name, a text, a dictionary
run_logs         the events of a recorded run, for programs
"""
