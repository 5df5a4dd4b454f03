"""Checks of what runs on nodes.

placements    no node is overcommitted, no pod is bound twice
identities    two pods with one name never run at the same time
rates         how fast the node lifecycle controller taints lost nodes
"""
