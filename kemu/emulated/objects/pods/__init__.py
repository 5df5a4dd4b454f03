"""Fields of pods that carry a meaning of their own.

bind_generations   how often a pod was bound (``kemu.dev/bind-generation``)
container_patterns patterns for containers and their owners: image, command, args, owner
declared_features  features that a node declares, and what needs them of it
gpu_cards          which cards of a node a pod uses
host_ports         ports that a pod takes on its node
planned_fields     fields that a scheduler's configuration may name before they are read
pod_phases         Pending, Running, Succeeded, Failed: what they mean for room on a node
"""
