"""The driver of a run on Ray. Begin at ``runtime``.

runtime     implements ``runtimes.Runtime``
fleets      starts, tells, watches and replaces all cells; ``cells`` is one of them, ``plans`` who lives where
events      the event streams of the cells; ``merges`` brings them into one order
backups     of disks, for the fault ``restore``
clusters    Ray itself
"""
