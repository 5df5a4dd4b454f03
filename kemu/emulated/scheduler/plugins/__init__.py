"""The plugins in the tree, one module each.

Begin with :mod:`kemu.emulated.scheduler.plugins.in_tree`, the registry, or with a short one,
:mod:`kemu.emulated.scheduler.plugins.node_unschedulable`.

avoid_evicted_node                   AvoidEvictedNode: rejects nodes whose kubelet has just evicted or rejected a pod
default_binder                       DefaultBinder: writes the binding through the API server
default_preemption                   DefaultPreemption: PostFilter
dynamic_resources                    DynamicResources: devices for the ResourceClaims of a pod
gang_scheduling                      GangScheduling: a group of pods waits until enough of it can run
image_locality                       ImageLocality: prefers nodes that already have the pod's images
inter_pod_affinity                   InterPodAffinity: affinity and anti-affinity to other pods
node_affinity                        NodeAffinity: nodeSelector, required and preferred node affinity
node_declared_features               NodeDeclaredFeatures: a pod's node must declare the features that it needs
node_name                            NodeName: a pod with ``spec.nodeName`` fits only on that node
node_ports                           NodePorts: no two pods of a node share a host port
node_resources_balanced_allocation   NodeResourcesBalancedAllocation: prefers nodes whose resources are used evenly
node_resources_fit                   NodeResourcesFit: the pod's requests must fit beside those of the node's pods
normalizing                          arithmetic that several score plugins share
pod_topology_spread                  PodTopologySpread: pods of a kind spread evenly over zones, racks or nodes
priority_sort                        PrioritySort: by priority, then by time
scheduling_gates                     SchedulingGates: a pod with gates does not enter the queue
taint_toleration                     TaintToleration: rejects nodes with taints that the pod does not tolerate
volumes                              the plugins for volumes: VolumeRestrictions, NodeVolumeLimits, VolumeBinding
"""
