"""Validation: what the API server refuses, with the reasons and texts of Kubernetes. Begin at ``kinds``.

amounts        checks of amounts of resources: names, quantities, requests against limits
causes         the causes of a refusal, one for each field
checks         checks of single values, and rules for the fields at given paths
control_plane  the checks of kinds about the control plane itself
core           the checks of the core group without pods and volumes
devices        the checks of resource.k8s.io: claims, their templates, classes, slices
extensions     the checks of kinds that extend the API: webhooks, policies, CustomResourceDefinitions
finalizers     checks of the finalizers of objects and namespaces (``ValidateFinalizers``, ``validateFinalizerName``)
metadata       checks of ``metadata``, which all kinds share, and of labels, selectors and other common parts
networks       the checks of Services, endpoints, Ingresses and NetworkPolicies
placement      checks of where a pod may run: tolerations, affinity, topology spread, scheduling gates
pod_specs      validation of pods
quotas         the checks of ResourceQuotas and LimitRanges
rules          what the checks of a kind consist of
small_groups   the checks of small API groups (policy, autoscaling, scheduling.k8s.io, …)
storage        the checks of volumes: claims, volumes, and the group storage.k8s.io
volume_sources the sources of volumes that pods and PersistentVolumes have in common
workloads      the checks of the groups apps and batch
"""
