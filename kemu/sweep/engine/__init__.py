"""Carries out the cells of an experiment, and journals what came of them."""
