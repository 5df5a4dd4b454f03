"""Extenders: processes that schedulers call, from both sides. Authors of an extender import all they need from here.

    from kemu.emulated.scheduler.extenders import Extender, unschedulable

Begin with :mod:`kemu.emulated.scheduler.extenders.servers`, the side of the extender;
:mod:`~kemu.emulated.scheduler.extenders.gpus` is one that comes with kemu, and
:mod:`~kemu.emulated.scheduler.extenders.clients` is the side of the scheduler.
"""

from kemu.emulated.scheduler.extenders.servers import Extender, Refusal, serve
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable, unschedulable

__all__ = ["Extender", "Refusal", "Status", "serve", "unresolvable", "unschedulable"]
