"""KubeSchedulerConfiguration, arguments of plugins, and the cost model."""
