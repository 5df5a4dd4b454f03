"""API Priority and Fairness of a cluster that has FlowSchemas (``apiserver/pkg/util/flowcontrol``). Begin with
``fairness``.

    fairness  which level a request belongs to, how wide it is, and the limits of all levels
    rules     which schema a request matches
    levels    the seats of one level and its queues: shuffle sharding, fair dispatch
    lending   how levels borrow seats from each other
"""
