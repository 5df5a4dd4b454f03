"""The events of the run log: a class for each kind, with its fields and its words.

``declared`` is the engine, ``subjects`` what many events name first, ``words`` what a class says for those that tell of
events, ``handlers`` how a method names the events that it takes. Every other module declares the events of one
component: ``api`` ``autoscaler`` ``clients`` ``controllers`` ``faults`` ``kubelet`` ``runtime`` ``scheduler`` ``store``
``users`` ``volumes``.
"""

from kemu.runtime.runlog.events.api import *  # noqa: F403
from kemu.runtime.runlog.events.autoscaler import *  # noqa: F403
from kemu.runtime.runlog.events.clients import *  # noqa: F403
from kemu.runtime.runlog.events.controllers import *  # noqa: F403
from kemu.runtime.runlog.events.declared import *  # noqa: F403
from kemu.runtime.runlog.events.faults import *  # noqa: F403
from kemu.runtime.runlog.events.kubelet import *  # noqa: F403
from kemu.runtime.runlog.events.runtime import *  # noqa: F403
from kemu.runtime.runlog.events.scheduler import *  # noqa: F403
from kemu.runtime.runlog.events.store import *  # noqa: F403
from kemu.runtime.runlog.events.subjects import *  # noqa: F403
from kemu.runtime.runlog.events.users import *  # noqa: F403
from kemu.runtime.runlog.events.volumes import *  # noqa: F403
