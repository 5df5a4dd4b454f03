"""The actor ``controller/deployment``: ReplicaSets of one pod template each, and rollouts from one to the next.

Begin with ``deployments``, the actor. ``rollouts`` decides how many replicas each ReplicaSet gets, ``revisions`` keeps
annotations and finds the ReplicaSet of a template, ``statuses`` computes status and conditions. Mirrors
``pkg/controller/deployment``.
"""
