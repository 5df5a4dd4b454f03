"""Checks of the cluster autoscaler.

machines      nodes and pods of a cluster that is scaled, and the machines behind the nodes
sizes         a group keeps its least and its greatest size
removals      a node goes only if its pods fit elsewhere, and they are evicted
additions     pods that fit nowhere get nodes
"""
