"""The broker: a process that starts or joins Ray and speaks with it for drivers. Begin at ``server``.

Ray ends the process that speaks with it when it loses its GCS or raylet, and changes how that process takes signals.
So it is not the driver that speaks with Ray, but a child of its own, to be watched and replaced.

server      the process itself: requests of drivers, and what it watches
nodes       a Ray node of our own, with as few processes as Ray runs with
standins    stands in for a helper process that Ray insists on
forks       stands in for another one, and forks Ray's workers
workers     what a raylet starts as a worker: asks for one that is forked
raylets     several raylets on one machine, for tests and measurements
pings       whether a GCS answers
"""
