"""gRPC in memory, for actors that live in one process. Begin at ``networks``: what a connection is, and how it breaks.

clients       the client's end: the channels and calls that generated stubs use
servers       the server's end: handlers and their contexts
ends          what both ends and the connection share: flow-control window, status, metadata
pumps         reading and writing streams without a task for each
networks      peers and the connections between them, for all runtimes
partitions    which traffic is cut
impairments     impairments: what makes messages late between actors, or has them come twice
network_faults  the faults of the network, and what begins each kind of them: the same in the simulation and in a cell
repeats         a unary request that is sent again: the server sees another call, and its answer is not waited for
"""
