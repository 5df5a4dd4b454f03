"""Measurements of kemu itself, for ``kemu bench``. Each in a process of its own, so that peak memory is its own too."""
