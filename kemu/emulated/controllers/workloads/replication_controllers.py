"""The actor ``controller/replicationcontroller``: what came before ReplicaSets, kept by the same code.

Mirrors ``pkg/controller/replication``, which adapts ReplicationControllers to ``pkg/controller/replicaset``.
"""

from __future__ import annotations

from kemu.emulated.controllers.workloads import replica_sets


class ReplicationController(replica_sets.ReplicaSetController):
    """Factory: ``kemu.emulated.controllers.workloads.replication_controllers:ReplicationController``."""

    resource, kind, counts_terminating = "replicationcontrollers", "ReplicationController", False
    reads_its_writes = False
