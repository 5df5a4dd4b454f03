"""gRPC in memory: the server's half (``servers``), the way between (``links``), the client's half (``channels``)."""
