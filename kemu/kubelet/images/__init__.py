"""The images of a node: pulls, and the garbage collector."""
