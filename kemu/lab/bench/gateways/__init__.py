"""What clients of the REST API get: `kemu up` in a process of its own, clients in another."""
