"""Fifty bugs that only the checks of every run may find: no expectation of a scenario counts.

They were written down before the checks that recompute what kubelets and controllers decide. Every one is searched in
shipped scenarios with ``timing: realistic`` (:mod:`tests.mutants.unaided.search`).
"""
