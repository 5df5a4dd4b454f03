"""A cluster in virtual time that real clients talk to: ``kemu up --virtual``.

Begin with ``worlds``, the cluster itself, in which nothing happens but what is injected. ``drivers`` lets its time
pass: as much as answers need, or as far as it is told (``kemu step``). ``channels`` are the gateway's, ``inputs`` the
record of all that came from outside, ``replays`` repeats a run from it, ``conditions`` are what a step can wait for.
"""
