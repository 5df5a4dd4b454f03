"""Validation of pods.

pods         a pod: its spec, what may change                    environments     variables, references to fields
containers   the containers of a pod, of all three sorts         volumes          volumes, mounts, block devices
probes       probes, lifecycle hooks, readiness gates            security         security contexts, Windows
ephemeral    containers that are added to a pod that runs        pod_annotations  what annotations say about a pod
resizes      changes of resources in place                       templates        a template of pods
app_armor    annotations of AppArmor, and the fields that they have become
"""
