"""A cell: one process that holds actors, serves them over gRPC, and obeys the driver. Begin at ``control``.

control                 the process and its control service
hosts                   makes actors, gives each its Env, and lets them go; the driver has one too
calls                   calls from other cells, and to them
wall_clocks, files      an actor's time and its files; ``disk_faults`` are faults of their disk
drivers                 what drives a run in real time; ``backups`` of disks, for its fault ``restore``
links                   faults below gRPC: TCP proxies between processes
segments                the file with the cell's events
tokens, certificates    who calls, and TLS
ticks, loads            when the process did not run, and how much it has to do
"""
