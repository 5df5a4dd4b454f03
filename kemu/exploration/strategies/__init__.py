"""Strategies: each a way of choosing what the next run does. The interface is ``kemu.exploration.plans.Strategy``.

seeds          another seed for each run, and nothing else
"""
