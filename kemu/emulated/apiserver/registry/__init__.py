"""What a request does to objects. Begin with ``registry`` (writes) and ``reads`` (get and list).

applies            managed fields of what is written, and server-side apply
bind_checks        ``bindCheck``: experiments in which the API server itself refuses a binding
bindings           bindings: a pod gets its node, once; and, an extension, several pods in one request
bodies             objects in the body of a request: protobuf as actors send them, JSON and YAML as people do
custom_strategies  what is particular to a custom kind
deletions          what a delete does to an object: grace period, finalizers, the moment in which it goes
entries            objects as they come and as they are kept: bytes, names, namespaces
evictions          the Eviction subresource: a delete that asks the pod's disruption budget first
kinds              the custom kinds of one API server, as its watch cache has their definitions
options            what a request asks beside its object: the options of lists, watches and writes
patching           what a patch makes of an object
scales             the Scale subresource: how many replicas a workload has, in one form for all kinds
strategies         what is particular to a kind, in a table: which rules of Kubernetes' strategies
turns              writes to one object take turns, in the order in which they arrived
"""
