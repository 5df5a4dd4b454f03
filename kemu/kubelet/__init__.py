"""The agent of one node: admits pods, runs them through their life, reports on them and on the node.

Read :mod:`kemu.kubelet.kubelet` (the actor) first, then :mod:`kemu.kubelet.pods.pods`: a pod arrives (``arrivals``,
``admission``, ``preemption``), starts (``images``, ``starts``, ``containers``, ``lives``), stops (``terminations``) and
is reported on (``statuses``, ``reports``). :mod:`kemu.kubelet.node.nodes` keeps the Node (``leases``). What is used,
and what follows, begins at :mod:`kemu.kubelet.pressure.pressures` (``usages``, ``machines``, ``stats``, ``eviction``,
``ranking``, ``oom``); ``boots`` and ``shutdowns`` are about machines that go off.

``admission``, ``critical``, ``preemption``, ``thresholds``, ``configurations``, ``ranking``, ``eviction`` and ``oom``
decide without actors or clocks: :mod:`kemu.conformance` asks them what Kubernetes was asked.
"""
