"""Checks that the store keeps, and reads show, what was written, and that a pause changes nothing else.

versions          every version of every key, also those that a recovery lost
writes            acknowledged writes survive crashes
linearizability   all answers fit one order of all operations
updates           an update without a version replaces nothing unseen
reads             reads from the past are monotonic; lists are snapshots
states            the store holds what its history says
journals          a recovery finds the journal undamaged
pauses            what a pause held back is done in its order
"""
