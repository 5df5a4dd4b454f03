"""The KubeletConfiguration: begin at ``kubelet_configurations``, which declares its fields.

``thresholds`` reads what the eviction fields state, ``image_policies`` and ``shutdown_groups`` are what follows for
image garbage collection and graceful node shutdown. ``devices`` are those that a node has, by driver. ``references``
says whether what pods name has to be there.
"""
