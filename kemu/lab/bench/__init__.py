"""Measurements of kemu itself, for ``kemu bench``. Each in a process of its own, so that peak memory is its own too.

``registry`` names them all and runs one. ``clusters`` and ``schedulers`` hold those of whole clusters and scheduling;
``shapes`` are the nodes and pods that several of them use, ``calibrations`` the speed of the machine.

cells          what cells of a sweep on a large cluster cost, set up one by one and from one set-up
clients        real clients of `kemu up`, beside the same clients of a real API server
counters       counts what a part of a run does: calls, messages, parses
explorations   how many runs of a small race a core carries out in a second, as a worker of ``kemu explore`` does
gateways       what clients of the REST API get: `kemu up` in a process of its own, clients in another
run_logs       what commands cost that read the log of a long run: the trace of one pod with and without the index
stores         the store by itself: acknowledged writes on a real disk, and how far one event fans out
sweeps         what a cell of ``kemu sweep`` costs beside itself, on processes and on Ray
workloads      what one changed pod costs the controllers of workloads and budgets
"""
