"""Where actors live: one ``Env``, two runtimes (``sim`` in virtual time, ``ray`` on real processes)."""
