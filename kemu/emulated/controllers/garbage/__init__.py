"""The garbage collector: deletes what has lost its owners, and finishes foreground and orphaning deletions.

``graphs`` knows who owns what, by what the watches say, and which objects have to be looked at for that; ``collector``,
the actor, asks the API server and acts.
"""
