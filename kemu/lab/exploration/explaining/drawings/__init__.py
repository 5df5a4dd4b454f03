"""Drawings of explanations.

diagrams   messages between actors as a sequence diagram, in text
svgs       the same as SVG
charts     probabilities along the steps of a failing run
"""
