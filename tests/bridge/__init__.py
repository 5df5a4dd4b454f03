"""kemu's actors against a real API server."""
