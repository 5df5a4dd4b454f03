"""Kubernetes' own e2e tests against ``kemu up``: what a real control plane with KWOK's nodes passes, kemu passes."""
