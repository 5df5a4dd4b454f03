"""Omega (Schwarzkopf et al., EuroSys 2013) reproduced: schedulers that race, in a model and on kemu.

    python -m experiments.published.omega --data DIR

Begin with ``__main__``. ``configurations`` has the rows of the published table, ``jobs`` draws the job lists,
``models`` is the published model and ``clusters`` the same on kemu, with ``actors`` of its own; both use ``placements``
and give ``outcomes``. ``figures`` computes the table from these, ``tolerances`` says how far it may be off, ``plans``
which runs there are, ``inputs`` finds the published files, ``results`` keeps what runs gave beside them, ``pages``
writes docs/published-omega.md.
"""
