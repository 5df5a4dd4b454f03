"""Exploration: many runs of a scenario, to find the ones that fail. A run is a scenario, a seed and holds.

executions     one run, in memory
causes         what makes two failures the same one
"""
