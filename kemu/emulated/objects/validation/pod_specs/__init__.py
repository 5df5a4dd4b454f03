"""Validation of pods.

pods         a pod: its spec, what may change                    environments     variables, references to fields
containers   the containers of a pod, of all three sorts         volumes          volumes, mounts, block devices
probes       probes, lifecycle hooks, readiness gates            security         security contexts, Windows
ephemeral    containers that are added to a pod that runs        pod_annotations  what annotations say about a pod
resizes      changes of resources in place                       templates        a template of pods
statuses     updates of the status of a pod                      app_armor        annotations that have become fields
"""
