"""The controllers that keep pods: ReplicaSet, StatefulSet, DaemonSet. Begin with ``base``, then ``replica_sets``.

``claims`` adopts and releases pods, ``expectations`` holds back a sync until the watch has shown the previous one,
``slow_start`` creates many pods carefully, ``availability`` applies ``minReadySeconds``, and ``losses`` records which
pod replaces which.

daemon                    the DaemonSet controller (`pkg/controller/daemon`)
deployments               the actor ``controller/deployment``: ReplicaSets of one pod template each
histories                 ControllerRevisions: the templates that a StatefulSet or DaemonSet has had
replication_controllers   the actor ``controller/replicationcontroller``: what came before ReplicaSets
scaling                   numbers and percentages that rollouts are limited by (``apimachinery/pkg/util/intstr``)
stateful                  the StatefulSet controller (`pkg/controller/statefulset`)
"""
