"""The descheduler: the actor ``controller/descheduler``, which evicts pods so that schedulers may place them better.

    descheduler    one round after the other: profiles, their strategies, the budget of evictions
    plugins        from a policy to its strategies
    strategies     those that judge pods one by one: restarts, age, failures, taints, node affinity, anti-affinity
    balances       those that compare nodes: duplicates, topology spread
    utilization    LowNodeUtilization and HighNodeUtilization
    evictions      which pods may be evicted at all (DefaultEvictor), how many, and the request
    clusters       what it knows of the cluster, and on which nodes a pod would fit
    policies       the policy: DeschedulerPolicy of ``descheduler/v1alpha2``

Mirrors ``sigs.k8s.io/descheduler`` of June 2026 (for Kubernetes 1.36). Where Go reads a map, and so in any order, this
goes by the order of nodes and of the names of pods.
"""
