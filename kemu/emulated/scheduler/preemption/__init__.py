"""Preemption: which pods have to leave which node (``candidates``), and their eviction (``evictions``).

Begin with :mod:`kemu.emulated.scheduler.preemption.candidates`.

sorts           the order in which Go's ``sort.Slice`` leaves elements that are equal
victim_orders   by what preemption ranks pods: priority, as kube-scheduler does, or the QoS class before
"""
