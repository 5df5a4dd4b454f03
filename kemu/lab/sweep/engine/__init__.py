"""Carries out the cells of an experiment, and journals what came of them.

sweeps        a sweep from beginning to end, or from where it was stopped
summaries     what it came to: the figures of variants, the judgements of claims
cell_tasks    one cell, in whichever process
saturation    when a cluster cannot keep up with its load
"""
