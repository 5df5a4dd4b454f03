"""Real clients of `kemu up`, beside the same clients of a real API server: what each reaches on this machine.

``parts`` finds the real parts, ``servers`` starts an API server of either kind, ``connections`` asks it, ``watches``
times what a watch sees, ``kwok`` starts KWOK; ``schedules`` measures the real kube-scheduler, ``hollow_nodes`` KWOK,
``stacks`` all parts together, ``pairs`` both sides.
"""
