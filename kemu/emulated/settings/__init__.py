"""The engine of settings: each is declared once, in an annotated dataclass beside the component that it acts in.

declared      a dataclass of settings, and what is made of it: loading, JSON Schema, tables of the documents
distributed   values that may be distributions
shapes        what a value may look like: checks it, describes itself as JSON Schema
documents     YAML with the file, line and column of each value
paths         paths into plain data
values        the small notations: durations, rates, shares
"""
