"""Admission plugins that complete or judge the tolerations of pods.

default_seconds      DefaultTolerationSeconds: 300 s on nodes that are not ready or unreachable
of_pods              PodTolerationRestriction: by namespace and of memory pressure; off by default
extended_resources   ExtendedResourceToleration: of the taints named like requested extended resources; off by default
sets                 sets of tolerations: merged, and compared with those that are allowed
"""
