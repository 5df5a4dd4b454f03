"""The runtime ``wall``: all actors in this process, on the wall clock, which may run faster. Begin at ``runtime``.

runtime       implements ``runtimes.Runtime`` around one host of actors (``ray.cell.hosts``, which knows no Ray)
standstills   what paused actors would have done by now
"""
