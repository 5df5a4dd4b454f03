"""Kubernetes objects: tables of kinds, JSON, quantities, requests, selectors, defaults and validation."""
