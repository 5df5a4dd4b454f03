"""Whether a node takes a pod, and which pods a critical one preempts: begin at ``arrivals``.

``predicates`` has the checks (``pkg/kubelet/lifecycle``), ``preemption`` chooses victims (``pkg/kubelet/preemption``).
"""
