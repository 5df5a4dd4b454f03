"""Where actors live: one ``Env``, two runtimes (``sim`` in virtual time, ``ray`` on real processes).

What both share:

    env                                   what an actor sees of the world, whole; read it first
    runtimes                              what a runtime offers to who drives a run
    streams, distributions                random numbers by name; what scenarios draw from them
    disks, servers, links, channels       disks; gRPC in memory: the server's half, the way, the client's half

The simulation:

    sim                                   the deterministic runtime
    loops, agendas, clocks                its event loop, what is due when, its time
    networks, guards, owners, tasks       latency and partitions; no way out; whose code runs; who waits where

On Ray:

    ray, ray_…                            the driver on Ray: clusters, plans of cells, their events, logs and traces
    cell, cell_…                          one process that holds actors: its hosts, servers, channels, clocks, logs
"""
