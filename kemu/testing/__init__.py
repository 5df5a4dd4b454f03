"""Helpers for tests of actors: the names of :mod:`kemu.doors.testing`."""

from kemu.runtime.sim.actor_tests import Recorder, sim

__all__ = ["Recorder", "sim"]
