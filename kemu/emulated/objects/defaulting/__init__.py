"""The defaults of objects: :mod:`kemu.emulated.objects.defaulting.defaults` is the entry, the others hold the kinds.

admission_registration  the defaults of webhooks and of admission policies
apps           the defaults of the group apps
autoscaling    the defaults of HorizontalPodAutoscalers (``pkg/apis/autoscaling/v2/defaults.go``)
batch          the defaults of the group batch
core           the defaults of the core group without pods, and of small API groups
data_sources   what a claim is to be filled with, said twice
definitions    the defaults of CustomResourceDefinitions
devices        the defaults of resource.k8s.io (``pkg/apis/resource/v1/defaults.go``)
pods           the defaults of pods and of the templates of pods
quotas         the defaults of ResourceQuotas and LimitRanges
shared         what the defaults of several kinds have in common
small_groups   the defaults of networking.k8s.io, discovery.k8s.io, rbac.authorization.k8s.io, and of Endpoints
storage        the defaults of volumes: claims, volumes, and the group storage.k8s.io
"""
