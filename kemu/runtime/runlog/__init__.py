"""The run log: everything that happened in a run, as framed msgpack; and the run folder. Format: docs/runs.md.

blocks          the file of a run log: frames in compressed blocks
bounds          a run log that takes no more than so many bytes: its beginning
crash_reports   what a user can send when kemu itself failed: a text file with versions, seed, traceback, last events
events          the events of the run log: a class for each kind, with its fields and its words
folders         run folders: what stands in them, and which are of one matrix
frames          the frames of a run log
tails           follows a run log that is still being written, from any place where a frame begins
"""
