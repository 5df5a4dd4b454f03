"""A soak of the Ray runtime: runs whose processes are killed and stopped from outside, and what must hold after each.

    python -m tests.soak --minutes 3 --runs 10 --nodes 100

scenarios   what is run
runs        one run, from its start to what it left behind
attacks     whom to kill or stop next, drawn from the seed
processes   the processes of a run, found by a mark in their environment, and what they use
up          a soak of ``kemu up``: pods come and go over the REST API, memory and disk stay bounded
witnesses   what the run says of itself, compared with what its store holds
"""
