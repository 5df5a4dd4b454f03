"""The controllers of the cluster, one actor each. Begin with ``controllers``, which all of them share.

    workloads/       ReplicaSets, StatefulSets, DaemonSets
    disruption       the status of disruption budgets
    node_lifecycle   lost nodes; decides by node_health (with taint_queues), leaves out steady_nodes
    taint_eviction   pods on tainted nodes; decides by taint_timers
    node_affinity_eviction   pods whose node has ceased to match their affinity, where they ask for it
    pod_gc           pods that no other controller would remove
    label_indexes    which selectors match an object, and which objects a selector matches

``node_health`` and ``taint_timers`` are state machines with explicit time, apart from the actors that carry out what
they decide.

    devices          the controllers of ResourceClaims and of taints of devices
    garbage          the garbage collector: deletes what has lost its owners
    jobs             Jobs, CronJobs, and Jobs whose time after their end is over
    namespaces       the actor ``controller/namespace``: empties namespaces that are being deleted
    quotas           the actor ``controller/resourcequota``: counts what each namespace uses of its quotas
    roles            the controller of aggregated ClusterRoles
    services         the controllers of Services, one actor each: EndpointSlices, Endpoints, load balancers
    settings         what every controller can be told: lag, replicas, leader election
    variants         what controllers may be made of instead: the classes of their variants
    volumes          the controllers of volumes, one actor each
"""
