"""The kubelet's own Node: begin at ``node_statuses``, which registers it and reports its status.

``leases`` renews its lease, ``shutdowns`` ends its pods before the machine goes off, ``boots`` says what became of
containers when it was off (``kubelet_node_status.go`` and ``nodeshutdown`` of ``pkg/kubelet``).
"""
