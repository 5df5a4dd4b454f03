"""Carries out the cells of an experiment, and journals what came of them.

sweeps        a sweep from beginning to end, or from where it was stopped
summaries     what it came to: the figures of variants, the judgements of claims
needs         memory and time that cells need: where they are placed, and how long the rest will take
cell_tasks    one cell, in whichever process
saturation    when a cluster cannot keep up with its load
"""
