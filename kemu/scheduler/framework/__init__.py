"""All that the author of a scheduler plugin imports: the names of :mod:`kemu.emulated.scheduler.framework`."""

from kemu.emulated.scheduler.framework import *  # noqa: F403
from kemu.emulated.scheduler.framework import __all__ as __all__
