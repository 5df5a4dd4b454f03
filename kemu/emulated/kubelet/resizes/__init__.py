"""Resizes of running pods in place: begin at ``allocations``, which decides which resize the node has room for.

``resources`` compares what the containers of a pod want, were allocated and have, and writes the events' messages.
"""
