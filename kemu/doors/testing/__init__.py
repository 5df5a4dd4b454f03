"""Helpers for tests, ours and those of users: imported when they are first used, as the pytest plugin lives here, too.

actor_tests      runs of single actors in sim (``sim``), a sink that keeps the log (``Recorder``)
pytest_plugin    options, markers, fixtures; imports nothing of kemu until a test needs it
pytest_items     what a test of kemu's is, and how its failure reads
repetitions      runs a test again and again: ``runnables``, as ``program_strategies`` plan; ``tapes``: what failed
"""

_ACTOR_TESTS = ("Recorder", "sim")

__all__ = ["Recorder", "sim"]


def __getattr__(name: str) -> object:
    if name not in _ACTOR_TESTS:
        raise AttributeError(f"module 'kemu.testing' has no attribute {name!r}")
    from kemu.runtime.sim import actor_tests

    found = globals()[name] = getattr(actor_tests, name)
    return found
