"""Faults of a cluster that real clients talk to.

clients            faults that clients meet, carried out by the gateway's layer
injectors          faults from outside while the cluster runs: of ``kemu chaos``
annotated_faults   faults that objects carry in an annotation
scripts            what has struck, written down to have it again
"""
