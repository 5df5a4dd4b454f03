"""Preemption: which pods have to leave which node (``candidates``), and their eviction (``evictions``).

Begin with :mod:`kemu.emulated.scheduler.preemption.candidates`.
"""
