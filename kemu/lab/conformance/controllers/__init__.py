"""Recorded decisions of the node lifecycle and the taint eviction controller."""
