"""The StatefulSet controller (`pkg/controller/statefulset`).

stateful_sets     the controller
stateful_pods     the pods of a set by ordinal, and what a set wants of them
stateful_claims   volume claims of its pods, and when they are deleted
"""
