"""How one comes in.

cli       the command line                api   what Python programs import: ``kemu.run``, ``kemu.explore``, …
testing   the pytest plugin and helpers for tests
"""
