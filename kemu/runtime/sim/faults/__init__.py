"""The faults of the simulation. ``faults`` keeps those in force and knows what begins each kind of them.

disks       faults of disks: begins each kind, and ends it
processes   the faults of processes and of their clocks: what begins and ends each kind
"""
