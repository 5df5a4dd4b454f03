"""The controllers of the cluster, one actor each, and what they decide, apart from the actors that carry it out.

:mod:`kemu.controllers.controllers` is what they share, :mod:`kemu.controllers.workloads` what those have in common
that keep pods. ``node_lifecycle`` decides by ``node_health``, ``taint_queues`` and ``steady_nodes``;
``taint_eviction`` by ``taint_timers``.
"""
