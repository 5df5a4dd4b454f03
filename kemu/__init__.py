"""kemu: a Kubernetes scheduling control plane to race, starve and break, in virtual time or on Ray."""

__version__ = "0.1.0"
