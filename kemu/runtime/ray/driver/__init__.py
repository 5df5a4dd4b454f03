"""The driver of a run on Ray: clusters, plans of cells, their events and traces. Begin at ``runtime``."""
