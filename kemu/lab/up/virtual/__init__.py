"""A cluster in virtual time that real clients talk to: ``kemu up --virtual``.

Begin with ``worlds``, the cluster itself, in which nothing happens but what is injected. ``drivers`` lets its time
pass: as much as answers need, or as far as it is told (``kemu step``). ``channels`` are the gateway's, ``inputs`` the
record of all that came from outside, ``replays`` repeats a run from it, ``conditions`` are what a step can wait for.

clock_files  the virtual time in a file, for programs outside
sessions   one cluster in virtual time with its gateway, from its start to its verdict: ``kemu up --virtual``
strikes    between the faults of a world in virtual time and the gateway's layer for faults of clients
"""
