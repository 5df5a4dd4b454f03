"""Programs as people write them with the Python clients of Kubernetes. Each works in a namespace of its own and returns
what it saw; the same is expected of a real API server and of kemu."""
