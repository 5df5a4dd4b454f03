"""Node pressure: begin at ``eviction_loops``, which says when the eviction manager looks and carries its evictions out.

``eviction`` decides (``pkg/kubelet/eviction``), with the order from ``ranking``, the limits from ``local_storage`` and
the texts from ``eviction_messages``. ``notifiers`` says when the kernel has it look besides. ``oom_kills`` is the
kernel's OOM killer, ``oom_scores`` the order of its victims.
"""
