"""Drawn examples: the same ones every time, and no matter how slow the machine is.

``pytest --hypothesis-profile search`` draws new ones.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("kemu", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("kemu")
