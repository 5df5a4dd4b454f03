"""The engine of settings: each is declared once, in an annotated dataclass beside its owner.

documents       YAML with the place of every value
values          notations: durations, rates, shares
shapes          what a value may look like: checks it, describes itself as JSON Schema
distributed     values that may be distributions
paths           paths into plain data
"""
