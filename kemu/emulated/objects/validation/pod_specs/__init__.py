"""Validation of pods.

pods       a pod: its spec, its containers, what may change     templates   a template of pods
probes     probes, lifecycle hooks, readiness gates             resizes     changes of resources in place
ephemeral  containers that are added to a pod that runs
"""
