"""Measurements of kemu itself, for ``kemu bench``. Each in a process of its own, so that peak memory is its own too.

``registry`` names them all and runs one. ``clusters`` and ``schedulers`` hold those of whole clusters and scheduling;
``shapes`` are the nodes and pods that several of them use, ``calibrations`` the speed of the machine.
"""
