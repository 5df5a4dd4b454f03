"""Discovery: which groups, kinds, verbs and subresources there are.

``catalogue`` says what the gateway serves, in the order of Kubernetes; ``legacy`` and ``aggregated`` make the two forms
of documents of it, which are made once.

protobufs   the documents of ``legacy`` in protobuf, as clients ask that prefer it
"""
