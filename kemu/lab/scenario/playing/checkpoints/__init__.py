"""Checkpoints of a run in virtual time, from which it goes on after its process was killed.

keeping    the side of the run: when it makes a checkpoint, and what becomes of the one before
sleeping   the checkpoint: a paused copy of the process, which waits to be woken
waking     the side of who asks it, or wakes it

log_differences  where the logs of two runs part that should be the same: one that is made again, and what is left of it
"""
