"""Kubernetes JSON to messages and back. Begin at ``convert``."""
