"""gRPC in memory, for actors that live in one process. Begin at ``networks``: what a connection is, and how it breaks.

clients       the client's end: the channels and calls that generated stubs use
servers       the server's end: handlers and their contexts
ends          what both ends and the connection share: flow-control window, status, metadata
pumps         reading and writing streams without a task for each
networks      peers and the connections between them, for all runtimes
partitions    which traffic is cut
"""
