"""The command line: ``kemu run``, ``replay``, ``trace``, ``scenarios``, ``bench``, ``conformance``; a module each."""
