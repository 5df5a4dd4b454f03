"""The broker: a process that starts or joins Ray and speaks with it for drivers. Begin at ``server``.

Ray ends the process that speaks with it when it loses its GCS or raylet, and changes how that process takes signals.
So it is not the driver that speaks with Ray, but a child of its own, to be watched and replaced.

server      the process itself: requests of drivers, and what it watches
nodes       a Ray node of our own, with as few processes as Ray runs with
standins    stands in for two helper processes that Ray insists on
workers     what Ray's workers run
raylets     several raylets on one machine, for tests and measurements
pings       whether a GCS answers
"""
