"""The scheduler: framework, plugins, queue, preemption and the actor that runs them.

Read :mod:`kemu.scheduler.framework` first, then :mod:`kemu.scheduler.decisions` (one decision, without time) and
:mod:`kemu.scheduler.scheduler` (the actor).
"""
