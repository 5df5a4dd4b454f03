"""The command line: ``kemu run``, ``replay``, ``trace``, ``scenarios``, ``bench``."""
