"""pods, probes, resizes, templates."""
