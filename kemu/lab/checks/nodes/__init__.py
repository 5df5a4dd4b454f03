"""Checks of what runs on nodes.

placements    no node is overcommitted, no pod is rejected or bound twice without need
occupancies   what runs on every node
identities    two pods with one name never run at the same time
endings       containers end when their grace period does
readiness     containers are ready while their probes say so
revenants     a pod that is gone starts nothing
pressures     a kubelet acts on what it has measured, and keeps pods out
rankings      who is evicted first under pressure
taints        conditions, taints, and pods that do not tolerate them
rates         how fast the node lifecycle controller taints lost nodes
devices       a device belongs to one claim at a time
volumes       a volume of one node at a time is never attached to two
"""
