"""Faults: which kinds there are, and what each does. Begin with ``kinds``, the table.

Role: below the runtimes, which carry faults out, and the scenario format, which states them. ``hits`` keeps whom each
fault has struck, ``handlers`` the faults that actors carry out themselves. Nothing here knows of actors, event loops or
scenarios.

disks   the faults of one actor's disk that are in force, as the disks of all runtimes ask for them
"""
