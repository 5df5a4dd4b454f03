"""What is emulated: the objects of a cluster, and the components that work on them.

objects        Kubernetes' objects: names, amounts, defaults, validation, conversion
store          etcd                               apiserver     kube-apiserver
client         client-go                          scheduler     kube-scheduler
kubelet        kubelet                            controllers   kube-controller-manager
autoscaler     cluster-autoscaler and a cloud     gateway       the API over HTTP, for real clients
descheduler    the descheduler                    queues        Kueue: quotas of queues, for Jobs
bridge         kemu's scheduler on a real API     variants      what scenarios switch on and off
settings       the engine of settings: each is declared once
schemas        schemas of custom resources        cel           expressions in objects
cel            expressions in objects: rules, policies, selectors
"""
