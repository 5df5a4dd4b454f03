"""The Kubernetes REST API, over the gRPC services of the API server actors."""
