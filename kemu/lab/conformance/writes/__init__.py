"""Recorded writes to objects: applies, patches, updates, and the managed fields that come of them.

sequences   sequences of writes to one object, answered by an API server as it runs in a cluster
admitted    sequences of writes to objects of several kinds, of which admission makes something
"""
