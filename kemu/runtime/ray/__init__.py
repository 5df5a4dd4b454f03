"""The real runtime: actors in processes that Ray places and restarts, connected by gRPC. Begin at ``driver.runtime``.

driver      the process that drives a run: clusters, cells, their events
cell        what happens inside a process that holds actors; nothing there knows Ray or the driver
"""
