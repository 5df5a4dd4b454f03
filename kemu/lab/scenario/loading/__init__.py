"""From a YAML file to a scenario, or to all of its mistakes at once. Begin at ``loader``, which calls the steps.

loader         the steps, in their order
overriding     values from outside, put into the document
matrices       the variants of a matrix
clusters       nodes, schedulers and extenders
node_groups    the nodes of a cluster autoscaler
scaling        the same cluster, many times as large
controllers    which controllers run
users          users, and who events may be done as
timelines      events and workloads
loads          the rate of arrivals that makes a load of the nodes
faults, holds  what is injected, and which messages are kept back
references     whether names lead anywhere
mistakes       the order of mistakes, and which of them explain others
lints          what is right, and likely a mistake
objects        what manifests, files and traces hold
"""
