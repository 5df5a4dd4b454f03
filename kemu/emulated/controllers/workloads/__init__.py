"""The controllers that keep pods: ReplicaSet, StatefulSet, DaemonSet. Begin with ``base``, then ``replica_sets``.

``claims`` adopts and releases pods, ``expectations`` holds back a sync until the watch has shown the previous one,
``slow_start`` creates many pods carefully, ``availability`` applies ``minReadySeconds``, and ``losses`` records which
pod replaces which.
"""
