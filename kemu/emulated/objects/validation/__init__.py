"""Validation: what the API server refuses, with the reasons and texts of Kubernetes. Begin at ``kinds``."""
