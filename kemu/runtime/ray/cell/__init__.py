"""A cell: one process that holds actors, serves them over gRPC, and obeys the driver. Begin at ``control``.

control                             the process and its control service
hosts                               makes actors, gives each its Env, and lets them go; the driver has one too
inbound, channels                   calls from other cells, and to them
wall_clocks, files, segments        an actor's time, its files, and the file with the cell's events
ticks, loads                        when the process did not run, and how much it has to do
"""
