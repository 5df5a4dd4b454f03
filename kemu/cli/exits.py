"""Exit codes of all commands."""

HOLDS = 0
FAILS = 1
"""A check or an expectation failed."""
INPUT = 2
"""The input is wrong."""
UNKNOWN = 3
"""Something could not be judged, because it never happened in the run."""
USER_CODE = 4
"""Code that the user brought along raised: a plugin, an extender, a scheduler."""
INTERRUPTED = 130

BY_VERDICT = {"holds": HOLDS, "fails": FAILS, "unknown": UNKNOWN}
