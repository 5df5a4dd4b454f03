"""Recorded decisions of the node lifecycle and the taint eviction controller.

attachments          recorded attachments of volumes to nodes that fail
autoscaling          recorded looks of the HorizontalPodAutoscaler controller
cluster_autoscaling  recorded iterations of the cluster autoscaler, in a small world of machines, nodes and pods
descheduling         recorded turns of the strategies of the descheduler
devices              recorded timelines of the controllers of devices
elections            recorded leader elections, repeated by the candidates of ``elections``
garbage              recorded cascades of deletions
namespaces           recorded deletions of namespaces
node_failures        recorded node failures
queueing             recorded searches of Kueue's scheduler for victims
taint_evictions      recorded taint-based evictions, repeated with the actor ``controller/taint-eviction``
workloads            recorded syncs of the workload controllers, repeated one by one with the classes that run as actors
"""
