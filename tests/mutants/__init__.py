"""Planted bugs, and the checks that must find them.

``planting`` says what a mutant is and runs it; one module for each part of the control plane plants them; ``search``
looks for the seed at which each is found and writes ``kills.json``, which ``test_mutants`` asks again and from which
``docs/checks.md`` has its table.
"""
