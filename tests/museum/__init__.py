"""The museum: bugs of Kubernetes as scenarios, each shown and each repaired."""
