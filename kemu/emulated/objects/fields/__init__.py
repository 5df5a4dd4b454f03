"""How kemu treats every field that users write. Begin at ``sorts`` and ``tables``; ``refusals`` applies them.

apps_v1                   the fields of the workloads that have a controller
batch_v1                  the fields of Jobs and CronJobs
core_v1                   the fields of pods, nodes and the other kinds of the core group
kept_kinds                the kinds that everyday manifests hold and no controller of kemu acts on
kubelet_configuration     the fields of a KubeletConfiguration (kubelet.config.k8s.io/v1beta1)
meta_v1                   the fields of metadata and of other messages that many kinds share
other_groups              the fields of the kinds of small API groups: policy, scheduling.k8s.io, coordination.k8s.io
quotas                    the fields of ResourceQuotas and LimitRanges
resource_v1               the fields of devices: claims, their templates, classes, slices (resource.k8s.io)
scheduler_configuration   the fields of a KubeSchedulerConfiguration, by path; ``[]`` stands for every item of a list
storage_v1                the fields of volumes, claims and the kinds of storage.k8s.io
unsimulated               kinds of Kubernetes that kemu does not simulate: why, and what a scenario may say instead
"""
