"""Faults of a cluster that real clients talk to.

``clients`` has those that clients meet carried out by the gateway's layer; ``desks`` takes faults from outside while
the cluster runs, ``carriers`` from annotated objects; ``scripts`` writes down what has struck, to have it again.
"""
