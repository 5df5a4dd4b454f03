"""From a YAML file to a scenario, or to all of its mistakes. Begin at ``loader``."""
