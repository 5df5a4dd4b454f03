"""Sweeps: one experiment, that is each variant of a scenario with each seed, and what follows from the results.

cells          one variant with one seed, and what is kept of its run: the types that the folders below share
results        the tables of runs, in one Parquet file, and SQL over them
statistics     intervals, waiting times with censoring, claims and their judgement
experiments    kind ``Experiment``: from a file to an experiment, or to all of its mistakes; its variants and cells
engine         carries out cells in processes or on a Ray cluster; the journal, from which a sweep is resumed
remedies       a scenario beside the same with changes, and what got better
plots          pictures of results, from their tables alone
"""
