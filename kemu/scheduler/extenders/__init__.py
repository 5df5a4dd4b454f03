"""All that the author of a scheduler extender imports: the names of :mod:`kemu.emulated.scheduler.extenders`."""

from kemu.emulated.scheduler.extenders import *  # noqa: F403
from kemu.emulated.scheduler.extenders import __all__ as __all__
