"""The deterministic runtime: event loop, virtual time, simulated network. Begin at ``simulation``."""
