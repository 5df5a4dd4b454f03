"""Kind ``Experiment``: from a file to an experiment, or to all of its mistakes at once.

experiments    an experiment as data: its variants, seeds and cells
loader         from a file to an experiment; ``variants``: what ``vary`` stands for
keys           the tables of keys, the JSON Schema; ``values``: series of numbers
"""
