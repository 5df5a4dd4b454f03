"""Real Kueue with the real kube-scheduler: 500 Jobs that wait for quota, on `kemu up` or on a real control plane.

``programs`` builds Kueue's manager, ``manager`` installs and runs it, ``queues`` makes the queues and the Jobs,
``ledger`` judges every revision of what was seen, ``runs`` is the whole; ``python -m tests.clients.kueue`` prints its
figures.
"""
