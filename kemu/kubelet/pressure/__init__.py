"""Node pressure: thresholds, ranking, evictions, and the kernel's OOM kills. Begin at ``pressures``."""
