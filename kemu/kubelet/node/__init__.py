"""The kubelet's own Node: registration, status, lease, boots and graceful shutdown of its machine."""
