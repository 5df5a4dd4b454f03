"""The life of pods on a node, from arrival to the end of their containers. Begin at ``pods``."""
