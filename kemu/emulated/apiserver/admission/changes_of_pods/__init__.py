"""Changes of pods that their nodes cannot carry out.

node_features      NodeDeclaredFeatureValidator: features that the node does not declare
resizes            PodResizeValidator: more than the node has
"""
