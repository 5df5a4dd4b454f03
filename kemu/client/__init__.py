"""How actors talk to the API server: requests (clients), live views of it (informers), what to do next (workqueues)."""
