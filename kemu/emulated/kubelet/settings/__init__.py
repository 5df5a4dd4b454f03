"""The KubeletConfiguration: begin at ``kubelet_configurations``.

``evictions`` and ``thresholds`` read the eviction fields, ``image_policies`` those of image garbage collection,
``shutdown_groups`` those of graceful node shutdown.
"""
