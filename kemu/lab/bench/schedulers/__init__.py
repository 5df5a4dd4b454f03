"""What scheduling costs: decisions by themselves, as something else grows, with the API server, and for a long time."""
