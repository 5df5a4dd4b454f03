"""KubeSchedulerConfiguration and the cost model.

Begin with :mod:`kemu.emulated.scheduler.configuration.configurations`.

    arguments         pluginConfig: checks and defaults of the plugins in the tree
    fields            kinds of values, and mistakes with their paths
    timings           how much virtual time work takes
    old               what configurations of older kube-schedulers say, and what is written today in its place
"""
