"""Drawings of explanations.

texts    in the terminal: the diagram, the sentences     svgs   one SVG file
charts   P(failure) over time
"""
