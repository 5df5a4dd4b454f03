"""The real runtime: actors in processes that Ray places and restarts, connected by gRPC. Begin at ``driver.runtime``.

driver      the process that drives a run: clusters, cells, their events and traces
cell        what happens inside a process that holds actors; nothing there knows Ray or the driver
broker      the process that starts Ray and speaks with it, for drivers

``frames`` are the messages between driver and broker, ``processes`` helps both to leave none behind, ``tasks`` calls
functions in the processes of a Ray cluster, for ``kemu explore``.
"""
